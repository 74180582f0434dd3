// A process of its own, for what has no way back: limits, filters of system calls.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fiber_test.hpp"

namespace weft::test {

// The status with which a child ends that calls `body`, which returns it; or the signal that ends
// the child, negative. One that hangs is ended.
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
