// Being told what the kernel says about a descriptor, without being parked for it.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>

namespace weft::detail {

// Takes a waiter's place in one direction of a descriptor. It is notified once: that something may
// have happened, or that the descriptor was closed.
struct IoWatch {
  // Notes the event, and returns the waker of a waiter, if there is one. The thread that took the
  // watch out of the direction calls it; what it calls must not park.
  Waker (*tell)(IoWatch& self) noexcept;
  // Set by the teller, who does not touch the watch any more; see io::IoDirection.
  Atomic<bool> let_go{false};
};

}  // namespace weft::detail
