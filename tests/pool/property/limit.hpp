// Models the limit on the number of live workers of a pool.
#pragma once

#include <algorithm>
#include <cstddef>
#include <weft/pool_options.hpp>

namespace weft::test {

// With a load factor, the limit rises and falls by single steps between min_workers (at least 1)
// and the capacity. Otherwise, and for a closed pool, the limit is the capacity.
class ModelLimit {
 public:
  explicit ModelLimit(const PoolOptions& options)
      : factor_(options.grow.factor()),
        has_factor_(options.grow.kind() == GrowPolicy::Kind::load_factor),
        min_workers_(options.min_workers) {
    fit(options.capacity, false);
  }

  [[nodiscard]] std::size_t value() const { return value_; }
  // Call it if the pool has another capacity, or was closed or opened.
  void fit(std::size_t capacity, bool closed) {
    capacity_ = capacity;
    moves_ = has_factor_ && !closed;
    value_ = moves_ ? std::clamp(value_, least(), capacity) : capacity;
  }
  // Returns whether `tasks` queued or running tasks are too many for the limit.
  [[nodiscard]] bool is_too_low_for(std::size_t tasks) const {
    if (!moves_ || value_ == capacity_) return false;
    return static_cast<double>(tasks) > factor_.up * static_cast<double>(value_);
  }
  void raise() { value_ += std::min(factor_.step, capacity_ - value_); }
  void lower() { value_ -= std::min(factor_.step, value_ - least()); }

 private:
  [[nodiscard]] std::size_t least() const {
    return std::max<std::size_t>(std::min(min_workers_, capacity_), 1);
  }

  const GrowPolicy::LoadFactor factor_;
  const bool has_factor_;
  const std::size_t min_workers_;
  std::size_t capacity_ = 0;
  std::size_t value_ = 0;
  bool moves_ = false;
};

}  // namespace weft::test
