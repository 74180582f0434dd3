// A mutex that may not be worth waiting for.
#pragma once

#include <mutex>
#include <weft/deadline.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/thread.hpp"

namespace weft::base {

// Holds the mutex, unless `patience` ended first. It is for reports of faults: the faulty thread
// may hold the mutex and never release it. The function polls, because std::timed_mutex is larger
// and the sanitizers support it poorly. The thread-safety analysis does not support locks that are
// held on a condition.
[[nodiscard]] inline std::unique_lock<detail::ThreadMutex> lock_until(detail::ThreadMutex& mutex,
                                                                      Deadline patience) {
  if (patience.is_never()) return std::unique_lock(mutex);
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock && !patience.passed()) {
    yield_processor();
    (void)lock.try_lock();
  }
  return lock;
}

}  // namespace weft::base
