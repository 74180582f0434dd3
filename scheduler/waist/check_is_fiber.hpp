// The rule about waits on a worker's thread.
#pragma once

#include <weft/detail/waist.hpp>

#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

[[noreturn]] void refuse_to_park(detail::WaitReason reason) noexcept;

// Handlers of the runtime, on_deadlock for one, are called on a worker's own stack, which must not
// be parked: no thread would run the fibers that the wait is for.
inline void check_is_fiber(Worker& worker, detail::WaitReason reason) noexcept {
  if (worker.current_fiber() == nullptr) [[unlikely]]
    refuse_to_park(reason);
}

}  // namespace weft::scheduler
