// Determines how long fibers have been parked or running.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "scheduler/tuning.hpp"

namespace weft::fibers {
class FiberStore;
struct Fiber;
}  // namespace weft::fibers

namespace weft::scheduler {

class Shared;

// Visits all records periodically, and marks each unmarked parked fiber with the current time. The
// mark is a bit of the fiber's wait reason. The next park stores a new reason, which removes the
// mark. The time of a mark is therefore at most one census period after the start of the park. The
// census adds no work to a switch between fibers. A step visits the fibers of a few slabs, so that
// it does not delay the monitor's samples. Owner: the monitor.
class Census {
 public:
  explicit Census(fibers::FiberStore& fibers) noexcept : fibers_(fibers) {}

  // Begins a census if one is due, and performs one step of a census that is under way.
  void step(std::int64_t now) noexcept;
  // Returns whether the census has visited each fiber that has been parked since before `moment`.
  // Begins a census if necessary, and performs one step.
  [[nodiscard]] bool covers(std::int64_t moment, std::int64_t now) noexcept;
  // Returns how many fibers waited for another fiber in the last complete census: see
  // may_be_in_cycle().
  [[nodiscard]] std::size_t waits_for_fibers() const noexcept { return waits_; }

 private:
  void begin(std::int64_t now) noexcept;
  void visit_some(std::int64_t now) noexcept;

  fibers::FiberStore& fibers_;
  std::int64_t begun_ = 0;
  std::size_t next_slab_ = 0;
  std::size_t next_waits_ = 0;
  std::size_t waits_ = 0;
  bool is_under_way_ = false;
};

// Returns whether the fiber is parked, or waits while a fiber that it joins runs in place, on the
// same stack.
[[nodiscard]] bool is_waiting(const fibers::Fiber& fiber) noexcept;
// Marks one waiting fiber, as a census does. The caller must hold the store's lock. The mark stays
// until the fiber's wait has ended.
void mark_waiting(fibers::Fiber& fiber, std::int64_t now) noexcept;
[[nodiscard]] bool is_marked(const fibers::Fiber& fiber) noexcept;

// Returns the time since a census first saw the fiber's current park; 0 if no census has seen the
// park. Callbacks of FiberStore::for_each_until() may call it.
[[nodiscard]] std::chrono::nanoseconds parked_time(const fibers::Fiber& fiber,
                                                   std::int64_t now) noexcept;
// Returns parked_time() for a parked fiber. For a running fiber, returns how long the monitor has
// seen the fiber run without a switch.
[[nodiscard]] std::chrono::nanoseconds age_of(const fibers::Fiber& fiber, const Shared& shared,
                                              std::int64_t now) noexcept;

}  // namespace weft::scheduler
