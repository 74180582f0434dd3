// Locks a mutex, unless a deadline passes first.
#pragma once

#include <mutex>
#include <weft/deadline.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/thread.hpp"

namespace weft::base {

// Returns a lock. The lock holds the mutex unless `patience` ended first. Reports of faults use it,
// because the faulty thread may hold the mutex and never release it. The function polls, because
// std::timed_mutex is larger and the sanitizers support it poorly. The thread-safety analysis does
// not support a function that may or may not take a lock.
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
