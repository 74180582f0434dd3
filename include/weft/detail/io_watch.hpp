// Receives the kernel's notifications about a descriptor without parking.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>

namespace weft::detail {

// Takes the place of a waiter in one direction of a descriptor. It is notified once: either
// something may have happened, or the descriptor was closed.
struct IoWatch {
  // Records the event, and returns the waker of a waiter, if there is one. The thread that removed
  // the watch from the direction calls it; the function must not park.
  Waker (*tell)(IoWatch& self) noexcept;
  // Set by the notifying thread, which then does not access the watch any more; see
  // io::IoDirection.
  Atomic<bool> let_go{false};
};

}  // namespace weft::detail
