// Lets callers wait until a count has reached 0.
#pragma once

#include <cstddef>
#include <limits>
#include <weft/detail/late_wait.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

// Works like std::latch: it counts down to 0 and then stays open. A WaitGroup can also count up.
// Every call takes the lock of the latch. A successful wait returns only after the count_down()
// that opened the latch has accessed the object for the last time.
// Context: fibers and plain threads; arrive_and_wait() and all waits except try_wait() park.
// Ordering: each count_down() synchronizes with the return of each successful wait.
// Lifetime: the latch may be destroyed once every wait has succeeded, even before count_down()
// returns.
class Latch {
 public:
  // Returns the maximum count.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept {
    return std::numeric_limits<std::ptrdiff_t>::max();
  }
  // Counts down from `expected`, which must not be negative. If it is 0, the latch is open at once.
  explicit Latch(std::ptrdiff_t expected) noexcept;
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  // Subtracts `count`. If `count` or the result is below 0, the process ends with a report.
  void count_down(std::ptrdiff_t count = 1) noexcept;
  // Returns whether the latch is open.
  [[nodiscard]] bool try_wait() noexcept;
  // Parks until the latch is open.
  void wait() noexcept {
    WEFT_TELL_LATE_WAIT(latch, try_wait());
    (void)wait_until({});
  }
  // Waits as wait() does; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(Deadline::after(duration));
  }
  // Performs count_down() and wait() as one step.
  void arrive_and_wait(std::ptrdiff_t count = 1) noexcept;

 private:
  // Returns the waiters that the caller must wake once it has released the lock.
  [[nodiscard]] detail::Waiter* subtract(std::ptrdiff_t count) noexcept WEFT_REQUIRES(lock_);

  detail::SpinLock lock_;
  std::ptrdiff_t count_ WEFT_GUARDED_BY(lock_);
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft
