#include "base/thread_timer.hpp"

#include <signal.h>

namespace weft::base {

namespace {

// The kernel's number for the clock of a thread is the inverted thread number, above three bits
// that select the kind of clock.
clockid_t clock_of(int thread) noexcept {
  constexpr unsigned kOfThread = 4;
  constexpr unsigned kScheduled = 2;
  return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | kOfThread | kScheduled);
}

timespec to_timespec(std::chrono::nanoseconds duration) noexcept {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  return {.tv_sec = seconds.count(), .tv_nsec = (duration - seconds).count()};
}

}  // namespace

ThreadTimer::ThreadTimer(const Setting& setting) noexcept {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = setting.signal;
  event.sigev_value.sival_int = setting.value;
  event._sigev_un._tid = setting.thread;
  const itimerspec times{to_timespec(setting.period), to_timespec(setting.first)};
  exists_ = timer_create(clock_of(setting.thread), &event, &timer_) == 0;
  is_set_ = exists_ && timer_settime(timer_, 0, &times, nullptr) == 0;
}

ThreadTimer::~ThreadTimer() {
  if (exists_) timer_delete(timer_);
}

}  // namespace weft::base
