// The amount of memory that the process should not exceed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Compares the memory that the process uses with a goal. Near the goal, the caller must free
// caches. At the goal, spawns are refused until the process uses less memory. With a default goal,
// spawns are refused only if fibers hold at least an eighth of the goal; otherwise a refusal would
// save little. Any thread may call the const functions and may_grow(); the monitor calls the other
// functions.
class MemoryGoal {
 public:
  using InUse = std::size_t (*)() noexcept;

  // `bytes` is the goal; 0 means no goal. `in_use` returns the bytes that the process uses.
  MemoryGoal(std::size_t bytes, bool is_set_by_program, InUse in_use) noexcept
      : bytes_(bytes), is_set_by_program_(is_set_by_program), in_use_(in_use) {}

  // Returns true if the caller must free caches. It measures the memory at most once per period,
  // and reports on stderr when the process first reaches the goal.
  [[nodiscard]] bool look(std::int64_t now) noexcept;
  // Decides whether spawns are refused. Must be called after look() has found that the goal is
  // reached. `of_fibers` is a lower bound on the bytes that fibers hold. Context: the monitor.
  void judge(std::size_t of_fibers) noexcept;
  // Measures the memory that the process uses, and returns false if spawns are refused.
  [[nodiscard]] bool may_grow(std::size_t of_fibers) noexcept;
  // Returns true if the memory grows so fast that the process will reach the goal within a few
  // measurements.
  // Context: the monitor.
  [[nodiscard]] bool is_close() const noexcept { return is_close_; }

  // Relaxed: the values are hints and statistics, and they publish no other data.
  [[nodiscard]] bool is_reached() const noexcept { return reached_.load(detail::relaxed) != 0; }
  // Returns true while spawns are refused.
  [[nodiscard]] bool is_refusing() const noexcept { return refusing_.load(detail::relaxed) != 0; }
  // Returns a value that is 1 while spawns are refused, otherwise 0.
  [[nodiscard]] const detail::Atomic<std::size_t>& refusing() const noexcept { return refusing_; }
  [[nodiscard]] bool is_set_by_program() const noexcept { return is_set_by_program_; }
  // Returns how often the goal has been reached.
  [[nodiscard]] std::uint64_t times() const noexcept { return times_.load(detail::relaxed); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void reach() noexcept;
  void report(std::size_t used) noexcept;
  [[nodiscard]] bool refuses(std::size_t of_fibers) const noexcept;

  const std::size_t bytes_;
  const bool is_set_by_program_;
  const InUse in_use_;
  detail::Atomic<std::size_t> reached_{0};  // 1 or 0.
  detail::Atomic<std::size_t> refusing_{0};
  detail::Atomic<std::uint64_t> times_{0};
  std::int64_t next_look_ = 0;
  std::size_t last_use_ = 0;  // The bytes that the process used at the last measurement.
  bool is_close_ = false;
  bool is_told_ = false;
};

}  // namespace weft::scheduler
