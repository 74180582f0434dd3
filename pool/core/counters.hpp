// Counts the tasks of a pool.
#pragma once

#include <cstdint>
#include <weft/detail/pool_job.hpp>

namespace weft::pool {

// Has no lock of its own; the pool's lock guards it. All events are counted under the lock, so a
// reader that holds the lock gets consistent values. Drain tasks, which run the tasks of
// sub-pools, have their own counters; `submitted` also counts drain tasks.
struct Counters {
  using Outcome = detail::PoolJob::Outcome;

  // Returns the number of tasks that have returned or thrown.
  [[nodiscard]] std::uint64_t ended() const noexcept { return completed + failed; }
  void count(Outcome outcome) noexcept {
    if (outcome == Outcome::completed) [[likely]] {
      ++completed;
    } else {
      ++(outcome == Outcome::failed      ? failed
         : outcome == Outcome::cancelled ? cancelled
                                         : drains_over);
    }
  }
  // Returns whether the number of ended tasks has reached a number for which a caller waits. May
  // return true even after that caller has given up.
  [[nodiscard]] bool is_awaited() const noexcept { return ended() >= next_awaited; }

  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t next_awaited = UINT64_MAX;  // No caller waits for a smaller number of ended tasks.
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t rejected = 0;
  std::uint64_t drains = 0;       // Drain tasks accepted so far.
  std::uint64_t drains_over = 0;  // Drain tasks that ended or were dropped.
  // Becomes true when a worker leaves the WorkerSet while it destroys its FiberLocal values.
  bool clears_without_place = false;
};

}  // namespace weft::pool
