// Runs a test in a child process, because it makes changes that a process cannot undo: limits,
// filters of system calls.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fiber_test.hpp"

namespace weft::test {

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

}  // namespace weft::test
