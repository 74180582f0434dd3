// Repeats calls that fail.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/until.hpp>

namespace weft {

// Limits the retries of all callers that share the budget, so that retries do not multiply the load
// of a failing service. The budget is full at first, and each retry reduces it by one.
// Context: fibers and plain threads; no call parks.
class RetryBudget {
 public:
  // Makes a budget of at most `burst` retries. Each call adds `per_call`, rounded down to 0.001.
  // Throws: std::invalid_argument for a `per_call` that is below 0, above 1000 or not a number, and
  // for a `burst` of 0.
  explicit RetryBudget(double per_call = 0.1, std::uint32_t burst = 10);
  RetryBudget(const RetryBudget&) = delete;
  RetryBudget& operator=(const RetryBudget&) = delete;

  // Counts a call, whether or not it is retried.
  void count_call() noexcept;
  // Takes one retry from the budget. Returns false if none is left; the caller must then give up.
  [[nodiscard]] bool try_take() noexcept;
  // Returns the number of retries left, rounded down; the number may be stale.
  [[nodiscard]] std::uint32_t left_hint() const noexcept {
    return static_cast<std::uint32_t>(thousandths_.load(detail::relaxed) / 1000);
  }

 private:
  const std::int64_t per_call_;  // Thousandths of a retry.
  const std::int64_t most_;      // Thousandths of a retry.
  // Relaxed: the count does not order accesses to other data.
  detail::Atomic<std::int64_t> thousandths_;
};

struct RetryOptions {
  // The maximum number of attempts, including the first. At least 1.
  std::uint32_t attempts = 4;
  // The maximum delay before the second attempt; the maximum doubles for each further attempt. The
  // delay is random between 0 and the maximum ("full jitter"), so callers that failed at the same
  // time retry at different times. Not below 0.
  std::chrono::nanoseconds first_delay = std::chrono::milliseconds(50);
  // The upper limit of every delay. Not below 0.
  std::chrono::nanoseconds max_delay = std::chrono::seconds(5);
  // All attempts begin within this time after the first began; the last attempt may end later.
  std::chrono::nanoseconds total = kNever;
  // The shared budget of retries, which must outlive the call. Null: no budget.
  RetryBudget* budget = nullptr;
};

// An attempt throws a TryAgain to make retry() repeat the attempt. If no attempt follows, retry()
// throws the contained exception, or the TryAgain if it contains none.
// Context: plain value.
class TryAgain : public std::runtime_error {
 public:
  // Makes a TryAgain with a message and without a contained exception.
  explicit TryAgain(const std::string& reason) : std::runtime_error(reason) {}
  // Makes a TryAgain that contains `cause`: catch (...) { throw TryAgain(std::current_exception());
  // }
  explicit TryAgain(std::exception_ptr cause)
      : std::runtime_error("weft::TryAgain"), cause_(std::move(cause)) {}

  // Returns the contained exception, or null.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

// An attempt that can have a result even when it fails returns this type.
template <class T>
struct Attempt {
  T value;
  bool may_try_again = false;  // If false, `value` is the result.
};

namespace detail {

// Returns the delay that follows the attempt with the number `made`, which is at least 1. `random`
// has 64 random bits.
[[nodiscard]] std::chrono::nanoseconds backoff_delay(const RetryOptions& options,
                                                     std::uint32_t made,
                                                     std::uint64_t random) noexcept;

// Decides whether to make another attempt, and when.
class RetryPlan {
 public:
  // Throws std::invalid_argument if an option is out of range.
  RetryPlan(const Until& until, const RetryOptions& options);

  // Parks for the delay. Returns false if there is no further attempt.
  [[nodiscard]] bool next() noexcept;

 private:
  const RetryOptions options_;
  const Until limit_;
  std::uint32_t made_ = 1;  // The number of attempts, including the current one.
};

[[nodiscard]] bool is_try_again(const std::exception_ptr& failure) noexcept;
// Throws the exception that a TryAgain contains, or the TryAgain if it contains none.
[[noreturn]] void rethrow_cause(const std::exception_ptr& failure);

template <class T>
inline constexpr bool kIsAttempt = false;
template <class T>
inline constexpr bool kIsAttempt<Attempt<T>> = true;

template <class Result>
struct AttemptResult {
  using Type = Result;
};
template <class T>
struct AttemptResult<Attempt<T>> {
  using Type = T;
};

}  // namespace detail

// Calls `attempt` until it succeeds, with random delays between calls, and returns its result. The
// attempt decides whether it may be repeated: it throws TryAgain, or returns an Attempt<T> with
// may_try_again. Other results and exceptions end the loop at once. The call returns the value of
// the last attempt, or throws its exception.
//
//   const Response response = retry_until({.attempts = 3, .budget = &budget}, context, [&] {
//     Response answer = ask();
//     const bool is_busy = answer.status == 503;
//     return Attempt<Response>{std::move(answer), is_busy};
//   });
//
// `until` ends a running delay, or prevents one that would exceed its deadline. No further attempt
// begins then. The attempts themselves must observe `until`.
// Context: fibers and plain threads; parks for the delays between attempts.
// Throws: what `attempt` or its move throws; std::invalid_argument if an option is out of range.
template <std::invocable F>
auto retry_until(const RetryOptions& options, const Until& until, F attempt) ->
    typename detail::AttemptResult<std::invoke_result_t<F&>>::Type {
  using Result = std::invoke_result_t<F&>;
  detail::RetryPlan plan(until, options);
  for (;;) {
    std::exception_ptr failure;
    WEFT_TRY {
      if constexpr (detail::kIsAttempt<Result>) {
        Result made = std::invoke(attempt);
        if (!made.may_try_again || !plan.next()) return std::move(made.value);
      } else {
        return std::invoke(attempt);
      }
    }
    WEFT_CATCH_ALL {
      failure = std::current_exception();
      if (!detail::is_try_again(failure)) WEFT_RETHROW;
    }
    // The wait comes after the handler, so that the fiber parks with no exception in flight.
    if (failure != nullptr && !plan.next()) detail::rethrow_cause(failure);
  }
}
// Works like retry_until(), limited only by the options.
// Context, Throws: the same as for retry_until().
template <std::invocable F>
auto retry(const RetryOptions& options, F attempt) {
  return retry_until(options, {}, std::move(attempt));
}

// The overloads below exist only for their error messages.
template <class F>
requires(!std::invocable<F>) void retry(const RetryOptions&, F) {
  static_assert(detail::kFits<F>, "weft::retry: the attempt must take no arguments");
}
template <class F>
requires(!std::invocable<F>) void retry_until(const RetryOptions&, const Until&, F) {
  static_assert(detail::kFits<F>, "weft::retry_until: the attempt must take no arguments");
}

}  // namespace weft
