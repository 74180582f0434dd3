// Limits a rate, but permits bursts.
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
  // The number of tokens that arrive, evenly spread, in each period of length `per`. At least 1.
  std::uint64_t tokens = 1;
  // The period, in nanoseconds. Above 0.
  std::chrono::nanoseconds per = std::chrono::seconds(1);
  // The largest number of tokens that the bucket can hold and that one call may take. At least 1.
  std::uint64_t burst = 1;
};

// Limits an average rate. Tokens arrive at this rate, the bucket holds up to `burst` tokens, and
// each call takes some. The bucket starts full, and permits bursts:
//
//   TokenBucket bytes({.tokens = 1'000'000, .per = 1s, .burst = 64'000});
//   bytes.take(length);
//
// A Pacer enforces a minimum time between starts, and can be paused. A TokenBucket limits the total
// weight of starts at an exact rate, and can refuse a start. Both classes use Deadline's clock.
// Context: fibers and plain threads; take(), take_until() and take_for() park.
// Throws: calls that take tokens throw std::invalid_argument if `count` is above `burst`.
// Lifetime: the bucket may be destroyed once every call has returned.
// Fairness: FIFO; try_take() does not overtake waiters.
class TokenBucket {
 public:
  // Makes a full bucket.
  // Throws: std::invalid_argument if an option is out of range.
  explicit TokenBucket(const TokenBucketOptions& options);
  TokenBucket(const TokenBucket&) = delete;
  TokenBucket& operator=(const TokenBucket&) = delete;

  // Takes `count` tokens and returns true if the bucket has them and no caller is waiting.
  [[nodiscard]] bool try_take(std::uint64_t count = 1);
  // Parks until no earlier caller waits, then until it can take `count` tokens.
  void take(std::uint64_t count = 1) { (void)take_until({}, count); }
  // Waits like take(). Returns false, and takes no token, if `until` ended the wait.
  [[nodiscard]] bool take_until(const Until& until, std::uint64_t count = 1);
  template <class Rep, class Period>
  [[nodiscard]] bool take_for(std::chrono::duration<Rep, Period> duration,
                              std::uint64_t count = 1) {
    return take_until(Deadline::after(duration), count);
  }
  // Returns the current number of tokens, which may be stale.
  [[nodiscard]] std::uint64_t available_hint() const noexcept;

 private:
  // Counts fractions of a token, so that no rate is rounded: a token has per.count() parts, and
  // each nanosecond adds `tokens` parts. Below 2^126.
  using Parts = detail::WideNanoseconds;

  void check(std::uint64_t count) const;
  [[nodiscard]] Parts parts_of(std::uint64_t count) const noexcept {
    return static_cast<Parts>(count) * options_.per.count();
  }
  // `now`, in nanoseconds, was read before lock_ was locked, so refilled_ may be later.
  [[nodiscard]] Parts parts_at(std::int64_t now) const noexcept WEFT_REQUIRES(lock_);
  void refill(std::int64_t now) noexcept WEFT_REQUIRES(lock_);
  [[nodiscard]] bool take_at(std::int64_t now, std::uint64_t count) noexcept WEFT_REQUIRES(lock_);
  // Returns the time when `count` tokens will be available if no other caller takes any.
  [[nodiscard]] Deadline due(std::uint64_t count) noexcept WEFT_REQUIRES(lock_);

  const TokenBucketOptions options_;
  Semaphore turn_{1};  // The holder of its permit is the next caller to get tokens.
  mutable detail::SpinLock lock_;
  Parts parts_ WEFT_GUARDED_BY(lock_);            // The number of parts that existed at refilled_.
  std::int64_t refilled_ WEFT_GUARDED_BY(lock_);  // Nanoseconds, by Deadline's clock.
  // The number of callers that are waiting in take_until().
  std::uint64_t waiting_ WEFT_GUARDED_BY(lock_) = 0;
};

}  // namespace weft
