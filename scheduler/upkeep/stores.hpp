// Holds the free stacks and records of a scheduler, and releases their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/thread_annotations.hpp>

#include "base/memory_limits.hpp"
#include "fibers/fiber_store.hpp"
#include "fibers/stack_pool.hpp"
#include "scheduler/upkeep/memory_goal.hpp"

namespace weft::scheduler {

// Any thread may call any function.
class Stores {
 public:
  // The memory that the process should not exceed; 0 for no goal.
  struct Goal {
    std::size_t bytes = 0;
    bool is_set_by_program = false;
  };

  // `stack_main` is the entry function of each stack; the records belong to `owner`.
  Stores(fibers::StackMain stack_main, void* owner, std::size_t max_fibers, Goal goal)
      : stacks_(stack_main),
        fibers_(owner, max_fibers),
        goal_(goal.bytes, goal.is_set_by_program, &base::memory_in_use) {
    if (goal.bytes == 0) return;
    fibers_.refuse_while_any(goal_.refusing());
    fibers_.ask_before_growth(
        [](void* asked, std::size_t records) noexcept {
          auto& stores = *static_cast<Stores*>(asked);
          return stores.goal_.may_grow(stores.least_bytes(records));
        },
        this);
  }
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  [[nodiscard]] fibers::StackDepot& stacks() noexcept { return stacks_; }
  [[nodiscard]] fibers::FiberStore& fibers() noexcept { return fibers_; }
  [[nodiscard]] const MemoryGoal& goal() const noexcept { return goal_; }

  // Frees all unused memory.
  void trim() noexcept;
  // Performs one step of trim(); returns true if more unused memory remains.
  bool trim_some() noexcept;
  [[nodiscard]] bool has_surplus_hint() const noexcept;
  // Frees some memory that has been unused for a while, in small parts between other work. Stacks
  // and records that are unused for a whole period of half a second are freed in the next period,
  // or in several periods if there are very many. `now` is in nanoseconds. A call takes at most a
  // few milliseconds. Returns true if more memory must be freed in this period.
  bool decay_some(std::int64_t now) noexcept;
  // Compares the memory of the process with the goal, and frees some unused memory if the goal is
  // near. Returns true if the caller should check again soon. Context: the monitor.
  [[nodiscard]] bool mind_goal(std::int64_t now) noexcept;

 private:
  // Returns a lower bound on the memory of all fibers: `records` bytes for their records, and one
  // page for each stack whose memory has not been freed.
  [[nodiscard]] std::size_t least_bytes(std::size_t records) noexcept;

  fibers::StackDepot stacks_;
  fibers::FiberStore fibers_;
  MemoryGoal goal_;
  std::int64_t given_back_ = 0;  // When all unused memory was last freed because the goal was near.
  // Threads only try to lock it, because another thread may hold it for milliseconds.
  detail::SpinLock decay_lock_;
  std::int64_t decay_period_began_ WEFT_GUARDED_BY(decay_lock_) = 0;
  std::int64_t last_decay_ WEFT_GUARDED_BY(decay_lock_) = 0;
  // How many chains of unused stacks, and of unused records, are to be freed in this period.
  std::int64_t stacks_due_ WEFT_GUARDED_BY(decay_lock_) = 0;
  std::int64_t fibers_due_ WEFT_GUARDED_BY(decay_lock_) = 0;
};

}  // namespace weft::scheduler
