// When a pool starts workers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft {

// How many workers a pool has, between min_workers and capacity. Whatever it says, a task is
// accepted as long as there is room, and a queued task gets its turn. A plain value.
class GrowPolicy {
 public:
  enum class Kind : std::uint8_t { on_demand, eager, load_factor };

  // The load is what runs and is queued, the limit is how many workers may live: at least
  // min_workers and 1, at most the capacity. 0 < down < up, step >= 1, interval > 0.
  struct LoadFactor {
    double up = 2;         // A task that makes load > up * limit raises the limit by `step`.
    double down = 1;       // Every `interval` load < down * limit lowers it by `step`: idle workers
    std::size_t step = 1;  // are retired then, others leave after their task.
    // The limit is also raised if something is queued and no task has started for this long:
    // running tasks may be waiting for it.
    std::chrono::nanoseconds interval = std::chrono::milliseconds(100);
  };

  // One worker for each task that would have no idle one.
  [[nodiscard]] static constexpr GrowPolicy on_demand() noexcept { return {}; }
  // The first task without an idle worker starts as many as the capacity allows: later tasks of a
  // burst do not wait for the start of theirs. The capacity must be limited.
  [[nodiscard]] static constexpr GrowPolicy eager() noexcept {
    GrowPolicy policy;
    policy.kind_ = Kind::eager;
    return policy;
  }
  // On demand, within a limit that follows the load: fewer workers than tasks, where a task is
  // short, or workers are dear.
  [[nodiscard]] static constexpr GrowPolicy load_factor(LoadFactor factor) noexcept {
    GrowPolicy policy;
    policy.kind_ = Kind::load_factor;
    policy.factor_ = factor;
    return policy;
  }

  // on_demand().
  constexpr GrowPolicy() noexcept {}
  // Which of the policies it is.
  [[nodiscard]] constexpr Kind kind() const noexcept { return kind_; }
  // Returns the factor of load_factor(); other policies have no meaningful one.
  [[nodiscard]] constexpr const LoadFactor& factor() const noexcept { return factor_; }

 private:
  Kind kind_ = Kind::on_demand;
  LoadFactor factor_;
};

}  // namespace weft
