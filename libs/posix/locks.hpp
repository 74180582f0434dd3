// The pthread locks that the calling thread holds.
#pragma once

namespace weft::posix {

// Returns how many mutexes, rwlocks and running initializations by pthread_once() the thread holds.
// A lock belongs to its thread, so a fiber that parked with one could deadlock its worker.
[[nodiscard]] int locks_held() noexcept;

}  // namespace weft::posix
