// Handles forks, after which the child process has only the thread that called fork().
#pragma once

namespace weft::detail {

// Registers functions that each later fork() calls. It calls `before` before the fork, and then
// `in_parent` in the parent and `in_child` in the child. Throws std::system_error.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace weft::detail
