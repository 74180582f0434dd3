// Handling of forks: a child has only the thread that called fork().
#pragma once

namespace weft::detail {

// Registers calls for each later fork: before it; after it, in the parent; and in the child. Throws
// std::system_error.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace weft::detail
