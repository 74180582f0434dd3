// The kernel's information about a worker's thread.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Any thread may call it. An answer takes a system call or more, so a caller requests it only where
// the answer decides.
class ThreadFacts {
 public:
  // Processor time that the thread has used, in nanoseconds; 0 before it runs.
  [[nodiscard]] virtual std::int64_t processor_time() const noexcept = 0;
  // Returns whether the thread runs, or would if it had a processor.
  [[nodiscard]] virtual bool is_runnable() const noexcept = 0;

 protected:
  ThreadFacts() = default;
  ThreadFacts(const ThreadFacts&) = default;
  ThreadFacts& operator=(const ThreadFacts&) = default;
  ~ThreadFacts() = default;
};

// A thread of this process that has called adopt().
class WorkerThread final : public ThreadFacts {
 public:
  void adopt() noexcept;
  [[nodiscard]] std::int64_t processor_time() const noexcept override;
  [[nodiscard]] bool is_runnable() const noexcept override;
  // The kernel's number of the thread; 0 before it runs.
  [[nodiscard]] int number() const noexcept { return number_.load(detail::relaxed); }

 private:
  // Relaxed: numbers.
  detail::Atomic<int> processor_clock_{0};
  detail::Atomic<int> number_{0};
};

}  // namespace weft::scheduler
