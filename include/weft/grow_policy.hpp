// Policies that determine when a pool starts and retires workers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft {

// Determines how many workers a pool has, up to its capacity. Under each policy, the pool accepts
// tasks while there is room, and eventually runs each queued task that is not dropped.
// Context: plain value.
class GrowPolicy {
 public:
  enum class Kind : std::uint8_t { on_demand, eager, load_factor };

  // The load is the number of running tasks plus queued tasks that are not waiting for a key. The
  // limit is the maximum number of workers that exist at once. It is at least max(1, min_workers)
  // and at most the capacity. Requires 0 < down < up, step >= 1, and interval > 0.
  struct LoadFactor {
    double up = 2;  // A task that makes load > up * limit raises the limit in steps of `step`.
    // Once per `interval`, the limit falls by `step` if load < down * limit. Surplus workers then
    // retire: idle ones at once, busy ones after their task.
    double down = 1;
    std::size_t step = 1;
    // The limit also rises if a task is queued and none has started for one unpaused `interval`.
    std::chrono::nanoseconds interval = std::chrono::milliseconds(100);
  };

  // Returns the policy that starts workers for tasks that find no idle worker.
  [[nodiscard]] static constexpr GrowPolicy on_demand() noexcept { return {}; }
  // Returns the policy that starts workers up to the capacity as soon as a task finds no idle
  // worker. Later tasks of a burst then find an idle worker. The capacity must not be kUnlimited.
  [[nodiscard]] static constexpr GrowPolicy eager() noexcept {
    GrowPolicy policy;
    policy.kind_ = Kind::eager;
    return policy;
  }
  // Returns the policy that starts workers on demand, up to a limit that adapts to the load. Use it
  // for short tasks if workers are expensive, because several tasks then share each worker.
  [[nodiscard]] static constexpr GrowPolicy load_factor(LoadFactor factor) noexcept {
    GrowPolicy policy;
    policy.kind_ = Kind::load_factor;
    policy.factor_ = factor;
    return policy;
  }

  // Creates the policy that on_demand() returns.
  constexpr GrowPolicy() noexcept {}
  // Returns the kind of policy.
  [[nodiscard]] constexpr Kind kind() const noexcept { return kind_; }
  // Returns the argument of load_factor(), the only policy with an argument.
  [[nodiscard]] constexpr const LoadFactor& factor() const noexcept { return factor_; }

 private:
  Kind kind_ = Kind::on_demand;
  LoadFactor factor_;
};

}  // namespace weft
