// Takes a mutex, but gives up at a deadline.
#pragma once

#include <mutex>
#include <weft/deadline.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/thread.hpp"

namespace weft::base {

// Returns a lock that holds the mutex, unless `patience` ended first. It is for reports of faults:
// the faulty thread may hold the mutex and never release it. The function polls, because
// std::timed_mutex is larger and the sanitizers support it poorly. The thread-safety analysis does
// not support locks that a function takes only sometimes.
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
