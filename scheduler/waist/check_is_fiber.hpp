// Ends the process if a handler that a worker calls on its own stack tries to park.
#pragma once

#include <weft/detail/waist.hpp>

#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

[[noreturn]] void refuse_to_park(detail::WaitReason reason) noexcept;

// Handlers such as on_deadlock run on a worker's own stack, not in a fiber. They must not park,
// because no thread would run the fibers for which they wait.
inline void check_is_fiber(Worker& worker, detail::WaitReason reason) noexcept {
  if (worker.current_fiber() == nullptr) [[unlikely]]
    refuse_to_park(reason);
}

}  // namespace weft::scheduler
