// The kernel's information about a worker's thread.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Any thread may call the functions. Each function makes at least one system call, so call it only
// where a decision depends on the result.
class ThreadFacts {
 public:
  // Returns the processor time that the thread has used, in nanoseconds; 0 before it runs.
  [[nodiscard]] virtual std::int64_t processor_time() const noexcept = 0;
  // Returns whether the thread is running or waiting for a processor.
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
  // Returns the kernel's thread ID; 0 before the thread runs.
  [[nodiscard]] int number() const noexcept { return number_.load(detail::relaxed); }

 private:
  // Relaxed: these numbers publish no other data.
  detail::Atomic<int> processor_clock_{0};
  detail::Atomic<int> number_{0};
};

}  // namespace weft::scheduler
