// A timer of the processor time that one thread uses.
#pragma once

#include <chrono>
#include <ctime>

namespace weft::base {

// Sends a signal to a thread of this process, by that thread's processor time. So the signal comes
// while the thread runs, at a tick of the kernel's clock. A signal that is sent at once might meet
// a thread that has begun to wait meanwhile, and end its poll() or epoll_wait(), which SA_RESTART
// does not begin again.
class ThreadTimer {
 public:
  struct Setting {
    int thread = 0;  // The kernel's number.
    int signal = 0;
    int value = 0;                       // It is siginfo_t::si_value.
    std::chrono::nanoseconds first{1};   // Processor time until the first signal.
    std::chrono::nanoseconds period{0};  // Processor time between signals; 0: there is one.
  };

  // The thread may have ended; then no signal comes.
  explicit ThreadTimer(const Setting& setting) noexcept;
  ~ThreadTimer();
  ThreadTimer(const ThreadTimer&) = delete;
  ThreadTimer& operator=(const ThreadTimer&) = delete;
  // Returns false if the system has refused the timer.
  [[nodiscard]] bool is_set() const noexcept { return is_set_; }

 private:
  timer_t timer_{};
  bool exists_ = false;
  bool is_set_ = false;
};

}  // namespace weft::base
