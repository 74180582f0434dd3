// The rule about waits on a worker's thread.
#pragma once

#include <weft/detail/waist.hpp>

#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

[[noreturn]] void refuse_to_park(detail::WaitReason reason) noexcept;

// Handlers of the runtime, such as on_deadlock, are called on a worker's own stack, which must not
// park: no thread would run the fibers that the wait depends on.
inline void check_is_fiber(Worker& worker, detail::WaitReason reason) noexcept {
  if (worker.current_fiber() == nullptr) [[unlikely]]
    refuse_to_park(reason);
}

}  // namespace weft::scheduler
