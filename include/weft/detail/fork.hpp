// Handles forks: a child process has only the thread that called fork().
#pragma once

namespace weft::detail {

// Registers functions that each later fork calls: before the fork, after it in the parent, and
// after it in the child. Throws std::system_error.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace weft::detail
