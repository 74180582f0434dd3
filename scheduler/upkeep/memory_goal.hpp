// The amount of memory that the process should not exceed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Compares the memory of the process with a goal. Near the goal, caches must be freed. If the goal
// refuses, fibers cannot be spawned from when it is reached until the process uses less. The
// monitor measures. Any thread may call the const functions and may_grow.
class MemoryGoal {
 public:
  using InUse = std::size_t (*)() noexcept;

  // `bytes`: 0 for no goal. `in_use` returns the bytes that the process uses.
  MemoryGoal(std::size_t bytes, bool refuses, InUse in_use) noexcept
      : bytes_(bytes), refuses_(refuses), in_use_(in_use) {}

  // Returns true if caches must be freed. It measures at most once a period, and reports on stderr
  // when the goal is reached for the first time.
  [[nodiscard]] bool look(std::int64_t now) noexcept;
  // Measures, and returns false at the goal.
  [[nodiscard]] bool may_grow() noexcept;
  // Returns true if the memory grows so fast that the goal is only a few measurements away.
  // Context: the monitor.
  [[nodiscard]] bool is_close() const noexcept { return is_close_; }

  // Relaxed: hints and statistics, which guard nothing.
  [[nodiscard]] bool is_reached() const noexcept { return reached_.load(detail::relaxed) != 0; }
  // Returns true while spawns are refused.
  [[nodiscard]] bool is_refusing() const noexcept { return refuses_ && is_reached(); }
  // Returns 1 while the goal is exceeded, otherwise 0.
  [[nodiscard]] const detail::Atomic<std::size_t>& reached() const noexcept { return reached_; }
  // Returns how often the goal has been reached.
  [[nodiscard]] std::uint64_t times() const noexcept { return times_.load(detail::relaxed); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void reach() noexcept;
  void report(std::size_t used) noexcept;

  const std::size_t bytes_;
  const bool refuses_;
  const InUse in_use_;
  detail::Atomic<std::size_t> reached_{0};
  detail::Atomic<std::uint64_t> times_{0};
  std::int64_t next_look_ = 0;
  std::size_t last_use_ = 0;  // The bytes at the last measurement.
  bool is_close_ = false;
  bool is_told_ = false;
};

}  // namespace weft::scheduler
