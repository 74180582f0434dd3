// How many tasks there were.
#pragma once

#include <cstdint>
#include <weft/detail/pool_job.hpp>

namespace weft::pool {

// Kept under the lock of the pool, which each of these events holds anyway: so one reading is
// consistent. A plain value.
struct Counters {
  using Outcome = detail::PoolJob::Outcome;

  // Of tasks that have returned or thrown.
  [[nodiscard]] std::uint64_t ended() const noexcept { return completed + failed; }
  void count(Outcome outcome) noexcept {
    ++(outcome == Outcome::completed ? completed : outcome == Outcome::failed ? failed : cancelled);
  }
  // Whether somebody may have waited for as many as have ended. It may be too early, if who waited
  // has given up.
  [[nodiscard]] bool is_awaited() const noexcept { return ended() >= next_awaited; }

  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t next_awaited = UINT64_MAX;  // Nobody waits for less.
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t rejected = 0;
};

}  // namespace weft::pool
