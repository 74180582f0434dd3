// Runs a test in a child process, because it makes changes that a process cannot undo: limits,
// filters of system calls.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace weft::test {

// The status of a child that the system refuses what its test needs.
inline constexpr int kNotPossibleHere = 77;

// Runs `body`, which returns an exit status, in a child process. Returns that status, or the
// negated number of the signal that ended the child. Ends a child that hangs.
template <class Body>
[[nodiscard]] int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30 * kSlowdown);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Checks that a child returned 0. Skips the case if it returned kNotPossibleHere, because of `why`.
inline void check_child(int status, const char* why) {
  if (status == kNotPossibleHere) return skip(why);
  CHECK(status == 0);
}

}  // namespace weft::test
