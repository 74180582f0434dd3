// Being told what the kernel says about a descriptor, without being parked for it.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>

namespace weft::detail {

// Stands in one direction of a descriptor, where else a waiter would, until it is told once: that
// something may have happened, or that the descriptor was closed.
struct IoWatch {
  // Notes it, and returns whom to wake, if anybody. By whoever took the watch out of the direction;
  // what it calls must not park.
  Waker (*tell)(IoWatch& self) noexcept;
  // Set by the teller, who does not touch the watch any more; see io::IoDirection.
  Atomic<bool> let_go{false};
};

}  // namespace weft::detail
