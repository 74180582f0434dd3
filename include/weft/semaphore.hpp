// A bounded number of permits.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <weft/detail/late_wait.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

// A weighted counting semaphore. A demand that exceeds all permits blocks every later waiter until
// permits are added or the demand is withdrawn.
// Context: fibers and plain threads; acquire(), try_acquire_until() and try_acquire_for() park.
// Ordering: release() synchronizes with the return of the acquire() that it lets through.
// Lifetime: it may be destroyed once every acquire has returned and no release will begin. The last
// release need not have returned.
// Fairness: FIFO; no caller overtakes a waiter, not even with a smaller demand.
class Semaphore {
 public:
  // The largest number of permits.
  static constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

  // Has `permits` free permits, at most kMost.
  explicit Semaphore(std::uint64_t permits) noexcept : size_(clamp(permits)), available_(size_) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // Parks until the caller has `count` permits.
  void acquire(std::uint64_t count = 1) noexcept {
    WEFT_TELL_LATE_WAIT(semaphore, try_acquire(count));
    (void)try_acquire_until({}, count);
  }
  // Takes `count` permits without waiting. Returns false if fewer are free, or if a caller waits.
  [[nodiscard]] bool try_acquire(std::uint64_t count = 1) noexcept;
  // Waits as acquire() does. Returns false if `until` ended the wait; it then takes no permit.
  [[nodiscard]] bool try_acquire_until(const Until& until, std::uint64_t count = 1) noexcept;
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> duration,
                                     std::uint64_t count = 1) noexcept {
    return try_acquire_until(Deadline::after(duration), count);
  }
  // Frees `count` permits. More may be released than were acquired, so a semaphore of 0 can signal.
  // At most kMost permits are ever free.
  void release(std::uint64_t count = 1) noexcept;
  // Changes the number of permits to `permits`; the difference is added to the free permits or
  // taken from them. If the result is negative, returned permits cover the debt before a caller
  // gets a permit.
  void resize(std::uint64_t permits) noexcept;
  // Returns the number of free permits, which may be stale.
  [[nodiscard]] std::uint64_t available_hint() const noexcept;

 private:
  static constexpr std::int64_t clamp(std::uint64_t permits) noexcept {
    return static_cast<std::int64_t>(permits < kMost ? permits : kMost);
  }
  // Changes the number of free permits, within the allowed range.
  void add(std::int64_t permits) noexcept WEFT_REQUIRES(lock_);
  [[nodiscard]] bool take(std::uint64_t count) noexcept WEFT_REQUIRES(lock_);
  // Takes out every waiter that the free permits can serve, in order.
  [[nodiscard]] detail::Waiter* grant() noexcept WEFT_REQUIRES(lock_);

  mutable detail::SpinLock lock_;
  std::int64_t size_ WEFT_GUARDED_BY(lock_);
  // Negative after a resize() to less than the permits in use.
  std::int64_t available_ WEFT_GUARDED_BY(lock_);
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft
