// Background fibers: a pool's fibers that run no tasks.
#pragma once

#include <cstdint>
#include <weft/detail/waiter.hpp>

#include "pool/core/effects.hpp"

namespace weft::pool {

class PoolCore;

// Records whether a background fiber exists, and contains the wait list in which the fiber parks.
// It has no lock of its own; the pool's lock guards it. PoolCore starts the fiber, which runs a
// Body and counts as a user of the pool. The fiber holds the lock from its last check for work
// until it has recorded its end. If there is work later, the pool starts another fiber.
class BackgroundFiber {
 public:
  using Body = void (*)(PoolCore& core);

  [[nodiscard]] bool is_running() const noexcept { return is_running_; }
  void begin() noexcept { is_running_ = true; }
  void end() noexcept {
    is_running_ = false;
    fiber_ = 0;
  }
  // Returns the fiber's this_fiber::id(); 0 until the fiber has stored it.
  [[nodiscard]] std::uint64_t fiber() const noexcept { return fiber_; }
  void set_fiber(std::uint64_t id) noexcept { fiber_ = id; }
  // Returns the wait list in which the fiber parks until it is woken or its deadline passes.
  [[nodiscard]] detail::WaitList& sleeping() noexcept { return sleeping_; }
  void wake(Effects& effects) noexcept { effects.end_waits(sleeping_, true); }

 private:
  bool is_running_ = false;
  std::uint64_t fiber_ = 0;
  detail::WaitList sleeping_;
};

}  // namespace weft::pool
