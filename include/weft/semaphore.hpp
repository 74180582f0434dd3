// A bounded number of permits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <weft/detail/waiter.hpp>

namespace weft {

// A weighted counting semaphore for fibers and plain threads. Waiters are served first come, first
// served; no caller overtakes a waiter, not even with a smaller demand. So a demand that is larger
// than all permits holds up all waiters after it, until there are more permits or it gives up.
// release() synchronizes with the return of the acquire() that it lets through. It may be destroyed
// once every acquire has returned and no caller will begin a release; the one that let the last
// acquire through may be still on its way out.
class Semaphore {
 public:
  // The most permits there can be.
  static constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

  // With `permits` permits, all of them free. More than kMost count as kMost. Never parks.
  explicit Semaphore(std::uint64_t permits) noexcept : size_(clamp(permits)), available_(size_) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // Parks until `count` permits are the caller's.
  void acquire(std::uint64_t count = 1) noexcept { (void)try_acquire_until({}, count); }
  // Never parks. False also when somebody waits.
  [[nodiscard]] bool try_acquire(std::uint64_t count = 1) noexcept;
  // Returns false when `until` ended the wait; no permit has been taken then.
  [[nodiscard]] bool try_acquire_until(const Until& until, std::uint64_t count = 1) noexcept;
  // Waits as try_acquire_until() does, for at most `duration`.
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> duration,
                                     std::uint64_t count = 1) noexcept {
    return try_acquire_until(Deadline::after(duration), count);
  }
  // Never parks. By anybody: more may be released than were acquired, which is how a semaphore that
  // begins with 0 signals. No more than kMost are ever free.
  void release(std::uint64_t count = 1) noexcept;
  // Makes it a semaphore of `permits` permits: the difference to its former number of permits is
  // added to the free permits, or taken from them. If that leaves less than none, permits that come
  // back make up for it before anybody gets one. Never parks.
  void resize(std::uint64_t permits) noexcept;
  // Permits that are free now; may be stale when it returns. Never parks.
  [[nodiscard]] std::uint64_t available_hint() noexcept;

 private:
  static constexpr std::int64_t clamp(std::uint64_t permits) noexcept {
    return static_cast<std::int64_t>(std::min(permits, kMost));
  }
  // Changes the number of free permits, within what it can be.
  void add(std::int64_t permits) noexcept WEFT_REQUIRES(lock_);
  [[nodiscard]] bool take(std::uint64_t count) noexcept WEFT_REQUIRES(lock_);
  // Takes out every waiter that the free permits can serve, in order.
  [[nodiscard]] detail::Waiter* grant() noexcept WEFT_REQUIRES(lock_);

  detail::SpinLock lock_;
  std::int64_t size_ WEFT_GUARDED_BY(lock_);
  std::int64_t available_ WEFT_GUARDED_BY(lock_);  // Below 0 after a resize() to less than is out.
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft
