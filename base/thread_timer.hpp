// A timer for the processor time of one thread.
#pragma once

#include <chrono>
#include <ctime>

namespace weft::base {

// Sends a signal to a thread of this process, after a given processor time of that thread. So the
// signal arrives while the thread runs, at a tick of the kernel's clock. A directly sent signal
// might reach a thread that has begun to wait meanwhile. Such a signal would end poll() or
// epoll_wait(), which SA_RESTART does not restart.
class ThreadTimer {
 public:
  struct Setting {
    int thread = 0;  // The kernel's number.
    int signal = 0;
    int value = 0;                       // siginfo_t::si_value of the signal.
    std::chrono::nanoseconds first{1};   // Processor time until the first signal.
    std::chrono::nanoseconds period{0};  // Processor time between signals; 0 for a single signal.
  };

  // If the thread has ended, no signal is sent.
  explicit ThreadTimer(const Setting& setting) noexcept;
  ~ThreadTimer();
  ThreadTimer(const ThreadTimer&) = delete;
  ThreadTimer& operator=(const ThreadTimer&) = delete;
  // Returns false if the system refuses the timer.
  [[nodiscard]] bool is_set() const noexcept { return is_set_; }

 private:
  timer_t timer_{};
  bool exists_ = false;
  bool is_set_ = false;
};

}  // namespace weft::base
