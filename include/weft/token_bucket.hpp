// A rate that may be exceeded in bursts.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <weft/deadline.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/semaphore.hpp>
#include <weft/until.hpp>

namespace weft {

struct TokenBucketOptions {
  // How many tokens come in `per`, evenly. At least 1.
  std::uint64_t tokens = 1;
  // Nanoseconds; above 0.
  std::chrono::nanoseconds per = std::chrono::seconds(1);
  // The most tokens that are kept for later, and the most that one call may take. At least 1.
  std::uint64_t burst = 1;
};

// Lets through what a rate allows, on average: tokens come at the rate and are kept up to `burst`,
// and each call takes some. The bucket is full at first. For requests, bytes or messages that may
// come in bursts:
//
//   TokenBucket bytes({.tokens = 1'000'000, .per = 1s, .burst = 64'000});
//   bytes.take(length);
//
// Which one to take: a Pacer keeps single starts apart, always, and can be paused; a TokenBucket
// bounds their number over time, also of starts of different weight, and can refuse.
// Callers that wait are served first come, first served, and try_take() does not overtake them. All
// calls from fibers and plain threads, any number of callers at once. Time counts by the clock of
// Deadline, in whole nanoseconds; a rate is exact over any time. Calls synchronize with nothing,
// and park and throw where they say so. It may be destroyed once every call has returned.
class TokenBucket {
 public:
  // Full. Throws std::invalid_argument for an option that is out of its range.
  explicit TokenBucket(const TokenBucketOptions& options);
  TokenBucket(const TokenBucket&) = delete;
  TokenBucket& operator=(const TokenBucket&) = delete;

  // Takes `count` tokens if they are there and no caller waits. Never parks. Throws
  // std::invalid_argument for more than `burst`, as all forms do: they will never be there.
  [[nodiscard]] bool try_take(std::uint64_t count = 1);
  // Parks until `count` tokens are there and it is the caller's turn, and takes them.
  void take(std::uint64_t count = 1) { (void)take_until({}, count); }
  // Does as take(), but `until` may end the wait: false, and no token is taken.
  [[nodiscard]] bool take_until(const Until& until, std::uint64_t count = 1);
  // Does as take_until(), for `duration` at most.
  template <class Rep, class Period>
  [[nodiscard]] bool take_for(std::chrono::duration<Rep, Period> duration,
                              std::uint64_t count = 1) {
    return take_until(Deadline::after(duration), count);
  }
  // Tokens that are there now; may be stale when it returns. Never parks.
  [[nodiscard]] std::uint64_t available_hint() noexcept;

 private:
  // Parts of a token: in each nanosecond `tokens` parts come, and a token has `per` parts. So no
  // rate has to be rounded. Below 2^126.
  using Parts = detail::WideNanoseconds;

  void check(std::uint64_t count) const;
  [[nodiscard]] Parts parts_of(std::uint64_t count) const noexcept {
    return static_cast<Parts>(count) * options_.per.count();
  }
  // `now`: nanoseconds, read before the lock; another caller may have come with a later moment.
  void refill(std::int64_t now) noexcept WEFT_REQUIRES(lock_);
  [[nodiscard]] bool take_at(std::int64_t now, std::uint64_t count) noexcept WEFT_REQUIRES(lock_);
  // When `count` tokens will be there, if no caller takes any before.
  [[nodiscard]] Deadline due(std::uint64_t count) noexcept WEFT_REQUIRES(lock_);

  const TokenBucketOptions options_;
  Semaphore turn_{1};  // Of the callers that wait: its holder is the next one.
  detail::SpinLock lock_;
  Parts parts_ WEFT_GUARDED_BY(lock_);                // At the moment refilled_.
  std::int64_t refilled_ WEFT_GUARDED_BY(lock_);      // Nanoseconds, by the clock of Deadline.
  std::uint64_t waiting_ WEFT_GUARDED_BY(lock_) = 0;  // Callers in take_until() that wait.
};

}  // namespace weft
