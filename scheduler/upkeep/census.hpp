// Determines how long fibers have been parked, or have run.
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

// Visits all records periodically, and marks each unmarked parked fiber with the current time. A
// park stores its reason, and thereby removes the mark. A mark is therefore as old as the park, or
// younger by at most one period. Switches between fibers do no work for the census. A step visits
// the fibers of a few slabs, so that it does not delay the monitor's samples. Owner: the monitor.
class Census {
 public:
  explicit Census(fibers::FiberStore& fibers) noexcept : fibers_(fibers) {}

  // Begins a census that is due, or continues a census.
  void step(std::int64_t now) noexcept;
  // Returns whether the census has visited each fiber that has been parked since before `moment`.
  // If it has not, makes another step.
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

// Returns whether the fiber is parked, or waits for a fiber that runs on its stack.
[[nodiscard]] bool is_waiting(const fibers::Fiber& fiber) noexcept;
// Marks one fiber as a census does, under the store's lock. The mark stays until the fiber's wait
// has ended.
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
