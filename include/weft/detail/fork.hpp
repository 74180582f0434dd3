// Forks: a child has only the thread that called fork().
#pragma once

namespace weft::detail {

// From now on a thread that forks calls `lock` before and `unlock` after, in the child, too: no
// other thread holds what the child needs. Throws std::system_error.
void hold_over_forks(void (*lock)(), void (*unlock)());

// Another one in the child of a fork.
[[nodiscard]] int process_number() noexcept;

}  // namespace weft::detail
