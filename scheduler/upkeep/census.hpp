// Since when fibers are parked, or run.
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

// Walks all records now and then, and marks each parked fiber that has no mark yet with the time.
// A park stores its reason, and thereby removes the mark, so a mark that a reader finds is as old
// as the park, or up to a period younger. The paths from fiber to fiber do nothing for it.
// Owner: the monitor. A step visits the fibers of a few slabs, so that samples are not late.
class Census {
 public:
  explicit Census(fibers::FiberStore& fibers) noexcept : fibers_(fibers) {}

  // Begins a census that is due, or continues one.
  void step(std::int64_t now) noexcept;
  // Returns whether each fiber that is parked since before that moment has been visited since.
  // Otherwise makes a step on the way there.
  [[nodiscard]] bool covers(std::int64_t moment, std::int64_t now) noexcept;
  // How many fibers the last whole census saw that wait for another one: see may_be_in_cycle().
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

// Whether the fiber is parked, or waits for one that runs on its stack.
[[nodiscard]] bool is_waiting(const fibers::Fiber& fiber) noexcept;
// Does what a census does with a fiber, under the store's lock. The mark of a fiber that waits
// stays until that wait has ended.
void mark_waiting(fibers::Fiber& fiber, std::int64_t now) noexcept;
[[nodiscard]] bool is_marked(const fibers::Fiber& fiber) noexcept;

// How long the fiber has been parked as it is, as far as a census has seen; 0 if none has. What
// FiberStore::for_each_until() calls may call it.
[[nodiscard]] std::chrono::nanoseconds parked_time(const fibers::Fiber& fiber,
                                                   std::int64_t now) noexcept;
// The same, or if the fiber runs, how long it has run without a switch, as far as the monitor has
// seen.
[[nodiscard]] std::chrono::nanoseconds age_of(const fibers::Fiber& fiber, const Shared& shared,
                                              std::int64_t now) noexcept;

}  // namespace weft::scheduler
