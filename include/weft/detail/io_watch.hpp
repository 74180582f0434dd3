// Receives the kernel's notifications about a descriptor without parking.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>

namespace weft::detail {

// A descriptor notifies its watch for reading or writing, instead of waking a waiter. The watch is
// notified only once, when the descriptor may have become ready or is closed.
struct IoWatch {
  // Records the event, and returns the waker of a waiter, if there is one. The thread that removed
  // the watch from the direction calls this function, which must not park.
  Waker (*tell)(IoWatch& self) noexcept;
  // False while an io::IoDirection may access the watch. The thread that notifies the watch sets
  // this flag, and does not access the watch afterwards.
  Atomic<bool> let_go{true};
};

}  // namespace weft::detail
