// Waiting until a countdown has reached 0, once.
#pragma once

#include <cstddef>
#include <limits>
#include <weft/detail/waiter.hpp>

namespace weft {

// std::latch for fibers and plain threads. Counts down to 0 and stays open then.
// Each count_down() synchronizes with the return of each wait. Never destroy it before every wait
// has returned; the count_down()s may be still on their way out. (A WaitGroup counts up, too.)
// Every call takes the lock, so a wait that finds the latch open comes after the one that opened it
// has left. Calls park where they say so.
class Latch {
 public:
  // The most that a latch can count down from.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept {
    return std::numeric_limits<std::ptrdiff_t>::max();
  }
  // `expected` is not negative; a latch of 0 is open.
  explicit Latch(std::ptrdiff_t expected) noexcept;
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  // Never parks. Counting below 0 ends the process with a report.
  void count_down(std::ptrdiff_t count = 1) noexcept;
  // Returns whether it is open. Never parks.
  [[nodiscard]] bool try_wait() noexcept;
  // Parks until the latch is open.
  void wait() noexcept { (void)wait_until({}); }
  // Returns false when `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  // Waits as wait_until() does, for at most `duration`.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(Deadline::after(duration));
  }
  // count_down(), and then wait().
  void arrive_and_wait(std::ptrdiff_t count = 1) noexcept;

 private:
  // The waiters to be woken, once the lock is released.
  [[nodiscard]] detail::Waiter* subtract(std::ptrdiff_t count) noexcept WEFT_REQUIRES(lock_);

  detail::SpinLock lock_;
  std::ptrdiff_t count_ WEFT_GUARDED_BY(lock_);
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft
