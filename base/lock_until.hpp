// A mutex that may not be worth waiting for.
#pragma once

#include <mutex>
#include <weft/deadline.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/thread.hpp"

namespace weft::base {

// Holds the mutex, unless `patience` ended first. For reports of what went wrong: the thread that
// went wrong may be the one that holds it, and will never give it back.
// By trying again and again: std::timed_mutex is larger, and the sanitizers do not know it well.
// The analysis cannot follow it, as it knows no lock that is held on a condition.
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
