// The pthread locks that the calling thread holds.
#pragma once

namespace weft::posix {

// Mutexes, rwlocks and initializations by pthread_once() that are going on. They belong to threads:
// fibers of one worker cannot wait for each other by them. 0 on a thread without any.
[[nodiscard]] int locks_held() noexcept;

}  // namespace weft::posix
