// The checks that a world makes at each turn of a fiber.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <weft/detail/atomic.hpp>
#include <weft/sim.hpp>

#include "libs/sim/races.hpp"
#include "libs/sim/schedule.hpp"

namespace weft::sim {

// Counts the turns, and finds a fiber that stays ready without a turn while virtual time passes,
// because other fibers run or compute. A search takes a step for each ready fiber, and is made only
// if one of them may be starving. All times are nanoseconds.
class TurnWatch {
 public:
  explicit TurnWatch(const Options& options) noexcept
      : options_(options), races_before_(race_reports()) {}

  // Counts a turn that begins. Returns false if the count exceeds Options::max_turns.
  [[nodiscard]] bool begin_turn() noexcept {
    const std::uint64_t turns = turns_.load(detail::relaxed) + 1;
    turns_.store(turns, detail::relaxed);
    return turns <= options_.max_turns;
  }
  // Returns the number of turns. Any thread may call it.
  [[nodiscard]] std::uint64_t turns() const noexcept { return turns_.load(detail::relaxed); }
  // Returns a fiber that starves at `now`; null if there is none.
  [[nodiscard]] const Candidate* find_starving(std::span<const Candidate> ready,
                                               std::int64_t now) noexcept {
    if (options_.starvation.count() == 0 || now < next_search_ || ready.empty()) return nullptr;
    const auto oldest = std::ranges::min_element(ready, {}, &Candidate::ready_since);
    // If all chances are equal, one of n fibers gets none of 64 n turns with a probability of
    // 2^-92.
    const std::int64_t allowance =
        kTurns * options_.turn_time.count() * static_cast<std::int64_t>(ready.size());
    next_search_ = oldest->ready_since + options_.starvation.count() + allowance;
    return now >= next_search_ ? &*oldest : nullptr;
  }
  // Returns whether the thread sanitizer has reported a data race of this run.
  [[nodiscard]] bool has_race() const noexcept { return race_reports() != races_before_; }

 private:
  static constexpr std::int64_t kTurns = 64;

  const Options& options_;
  const std::uint64_t races_before_;
  std::int64_t next_search_ = std::numeric_limits<std::int64_t>::min();
  // Relaxed: the thread that waits for the end only checks whether the count grows.
  detail::Atomic<std::uint64_t> turns_{0};
};

}  // namespace weft::sim
