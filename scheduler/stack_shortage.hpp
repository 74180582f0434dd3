// When the system gives no more stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

class Scheduler;

// Fibers that find no stack wait for others to end; here is seen to it that somebody learns of it,
// and that it ends. A line says so at once and every ten seconds. When in five seconds no fiber has
// run, and neither the clock nor the kernel will wake one, those that have stacks wait for those
// that do not get any: that is reported as a deadlock. Other than for deadlocks, plain threads are
// not asked: one that waits for the fibers by looking again and again would keep the process
// hanging.
class StackShortage {
 public:
  explicit StackShortage(Scheduler& scheduler) noexcept : scheduler_(scheduler) {}
  StackShortage(const StackShortage&) = delete;
  StackShortage& operator=(const StackShortage&) = delete;

  // By a worker, on its idle stack, that found none of `stack_bytes`; again and again. True when
  // it should pause.
  [[nodiscard]] bool note(std::size_t stack_bytes) noexcept;

 private:
  void look(std::size_t stack_bytes) noexcept;
  [[nodiscard]] bool others_may_end() noexcept;
  void write_line(std::size_t stack_bytes, std::int64_t now) noexcept;

  Scheduler& scheduler_;
  detail::Atomic<std::uint32_t> notes_{0};  // Relaxed: any number near the right one will do.
  std::mutex mutex_;  // Guards the rest. Workers that find it taken have been noted.
  std::int64_t next_line_ = 0;
  std::int64_t still_since_ = 0;  // When a fiber was last seen to have run.
  std::int64_t last_note_ = 0;
  std::uint64_t switches_ = 0;
};

}  // namespace weft::scheduler
