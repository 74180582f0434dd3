// A bounded number of permits.
#pragma once

#include <cstdint>
#include <weft/detail/waiter.hpp>

namespace weft {

// A weighted counting semaphore. Waiters are served first come, first served; nobody overtakes
// a waiter, not even with a smaller demand. From fibers and plain threads.
// release() synchronizes with the return of the acquire() that it lets through.
class Semaphore {
 public:
  explicit Semaphore(std::uint64_t permits) noexcept : permits_(permits) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // Parks until `count` permits are the caller's.
  void acquire(std::uint32_t count = 1) noexcept { (void)try_acquire_until({}, count); }
  // Never parks.
  [[nodiscard]] bool try_acquire(std::uint32_t count = 1) noexcept;
  // False when `until` ended the wait; no permit has been taken then.
  [[nodiscard]] bool try_acquire_until(const Until& until, std::uint32_t count = 1) noexcept;
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> duration,
                                     std::uint32_t count = 1) noexcept {
    return try_acquire_until(Deadline::after(duration), count);
  }
  void release(std::uint32_t count = 1) noexcept;
  // Permits that are free now; may be stale when it returns.
  [[nodiscard]] std::uint64_t available_hint() noexcept;

 private:
  // Takes every waiter that the free permits can serve, in order; the lock is held.
  [[nodiscard]] detail::Waiter* grant() noexcept;

  detail::SpinLock lock_;
  std::uint64_t permits_;
  detail::WaitList waiters_;
};

}  // namespace weft
