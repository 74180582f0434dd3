#include "scheduler/thread_facts.hpp"

#include <pthread.h>
#include <unistd.h>

#include <ctime>

#include "base/thread.hpp"

namespace weft::scheduler {

using detail::relaxed;

void WorkerThread::adopt() noexcept {
  number_.store(::gettid(), relaxed);
  clockid_t clock = 0;
  if (::pthread_getcpuclockid(::pthread_self(), &clock) == 0) {
    processor_clock_.store(clock, relaxed);
  }
}

std::int64_t WorkerThread::processor_time() const noexcept {
  const clockid_t clock = processor_clock_.load(relaxed);
  timespec used{};
  if (clock == 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

bool WorkerThread::is_runnable() const noexcept { return base::is_runnable(number()); }

}  // namespace weft::scheduler
