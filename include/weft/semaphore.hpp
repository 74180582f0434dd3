// Provides a semaphore, whose permits limit how many callers proceed at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <weft/detail/late_wait.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

// A counting semaphore; one call may take several permits. A request for more permits than exist
// blocks all later waiters, until permits are added or the request ends.
// Context: fibers and plain threads; acquire(), try_acquire_until() and try_acquire_for() park.
// Ordering: release() synchronizes with the return of the acquire() that gets its permits.
// Lifetime: the semaphore may be destroyed once every acquire and release has returned. Exception:
// a release may still be running if an acquire has returned with permits from that release.
// Fairness: FIFO; no caller overtakes a waiter, even if the caller needs fewer permits.
class Semaphore {
 public:
  // The maximum number of permits.
  static constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

  // Makes a semaphore with `permits` free permits, at most kMost.
  explicit Semaphore(std::uint64_t permits) noexcept : size_(clamp(permits)), available_(size_) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // Parks until the caller has `count` permits.
  void acquire(std::uint64_t count = 1) noexcept {
    WEFT_TELL_LATE_WAIT(semaphore, try_acquire(count));
    (void)try_acquire_until({}, count);
  }
  // Takes `count` permits without waiting; returns false if fewer are free or a caller is waiting.
  [[nodiscard]] bool try_acquire(std::uint64_t count = 1) noexcept;
  // Waits as acquire() does. Returns false, without a permit, if `until` ended the wait.
  [[nodiscard]] bool try_acquire_until(const Until& until, std::uint64_t count = 1) noexcept;
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> duration,
                                     std::uint64_t count = 1) noexcept {
    return try_acquire_until(Deadline::after(duration), count);
  }
  // Frees `count` permits. Callers may release more than they acquired, so a semaphore with 0
  // permits can serve as a signal. At most kMost permits are ever free.
  void release(std::uint64_t count = 1) noexcept;
  // Changes the number of permits to `permits`, and the number of free permits by the difference.
  // If the number of free permits becomes negative, callers get no permit until the number is
  // positive again.
  void resize(std::uint64_t permits) noexcept;
  // Returns the number of free permits, or 0 if the number is negative; it may be stale.
  [[nodiscard]] std::uint64_t available_hint() const noexcept;

 private:
  static constexpr std::int64_t clamp(std::uint64_t permits) noexcept {
    return static_cast<std::int64_t>(permits < kMost ? permits : kMost);
  }
  // Changes the number of free permits, within the allowed range.
  void add(std::int64_t permits) noexcept WEFT_REQUIRES(lock_);
  [[nodiscard]] bool take(std::uint64_t count) noexcept WEFT_REQUIRES(lock_);
  // Removes waiters from the front of the list while the free permits can serve them.
  [[nodiscard]] detail::Waiter* grant() noexcept WEFT_REQUIRES(lock_);

  mutable detail::SpinLock lock_;
  std::int64_t size_ WEFT_GUARDED_BY(lock_);
  // Negative after a resize() to fewer permits than are in use.
  std::int64_t available_ WEFT_GUARDED_BY(lock_);
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft
