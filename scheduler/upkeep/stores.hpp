// The stacks and records of a scheduler that are free, and how their memory is given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "fibers/fiber_store.hpp"
#include "fibers/stack_pool.hpp"

namespace weft::scheduler {

// Any thread may call each function.
// Order
//   [decay]  decay_some leaves (release) -> the next one enters (acquire): what it noted.
// Relaxed: a look before the exchange.
class Stores {
 public:
  // `stack_main` is where each stack begins; the records belong to `owner`.
  Stores(fibers::StackMain stack_main, void* owner, std::size_t max_fibers)
      : stacks_(stack_main), fibers_(owner, max_fibers) {}
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  [[nodiscard]] fibers::StackDepot& stacks() noexcept { return stacks_; }
  [[nodiscard]] fibers::FiberStore& fibers() noexcept { return fibers_; }

  // Gives all back.
  void trim() noexcept;
  // One step of it; true when more is left to do.
  bool trim_some() noexcept;
  [[nodiscard]] bool has_surplus_hint() const noexcept;
  // Gives back a little of what has been unused for a while, alongside other work. What has lain
  // here for a whole period of half a second is given back in the course of the next one, or of
  // some if it is very much. `now` is in nanoseconds. Takes some milliseconds at most; true if more
  // is due already.
  bool decay_some(std::int64_t now) noexcept;

 private:
  fibers::StackDepot stacks_;
  fibers::FiberStore fibers_;
  detail::Atomic<bool> decaying_{false};  // Guards the next four.
  std::int64_t decay_period_began_ = 0;
  std::int64_t last_decay_ = 0;
  std::int64_t stacks_due_ = 0;  // Chains, when the period began.
  std::int64_t fibers_due_ = 0;
};

}  // namespace weft::scheduler
