#include <weft/retry.hpp>

#include <algorithm>
#include <weft/this_fiber.hpp>

#include "base/random.hpp"

namespace weft {

namespace {

std::int64_t checked_part(double per_call) {
  if (per_call >= 0 && per_call <= 1000) return static_cast<std::int64_t>(per_call * 1000);
  WEFT_THROW(std::invalid_argument("weft::RetryBudget: per_call = " + std::to_string(per_call) +
                                   "; must be from 0 to 1000"));
}

std::int64_t checked_burst(std::uint32_t burst) {
  if (burst > 0) return std::int64_t{1000} * burst;
  WEFT_THROW(std::invalid_argument("weft::RetryBudget: burst = 0; must be at least 1"));
}

const RetryOptions& checked_retry(const RetryOptions& options) {
  if (options.attempts == 0)
    WEFT_THROW(std::invalid_argument("weft::RetryOptions::attempts = 0; must be at least 1"));
  if (options.first_delay.count() < 0 || options.max_delay.count() < 0)
    WEFT_THROW(std::invalid_argument("weft::RetryOptions: a delay is below 0"));
  return options;
}

}  // namespace

RetryBudget::RetryBudget(double per_call, std::uint32_t burst)
    : per_call_(checked_part(per_call)), most_(checked_burst(burst)), thousandths_(most_) {}

// Relaxed, here and below: the number guards nothing.
void RetryBudget::count_call() noexcept {
  std::int64_t left = thousandths_.load(detail::relaxed);
  while (left < most_ &&
         !thousandths_.compare_exchange_weak(left, std::min(left + per_call_, most_),
                                             detail::relaxed, detail::relaxed)) {
  }
}

bool RetryBudget::try_take() noexcept {
  std::int64_t left = thousandths_.load(detail::relaxed);
  while (left >= 1000) {
    if (thousandths_.compare_exchange_weak(left, left - 1000, detail::relaxed, detail::relaxed))
      return true;
  }
  return false;
}

namespace detail {

std::chrono::nanoseconds backoff_delay(const RetryOptions& options, std::uint32_t made,
                                       std::uint64_t random) noexcept {
  // Beyond 62 doublings even a nanosecond is above any bound.
  const WideNanoseconds doubled = WideNanoseconds(options.first_delay.count())
                                  << std::min<std::uint32_t>(made - 1, 62);
  const WideNanoseconds bound = std::min(doubled, WideNanoseconds(options.max_delay.count()));
  // Uniform in [0, bound): the product is below 2^127, because the random number has 63 bits.
  const WideNanoseconds part = bound * static_cast<WideNanoseconds>(random >> 1);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(part >> 63));
}

RetryPlan::RetryPlan(const Until& until, const RetryOptions& options)
    : options_(checked_retry(options)), limit_(until.but_before(Deadline::after(options.total))) {
  if (options_.budget != nullptr) options_.budget->count_call();
}

bool RetryPlan::next() noexcept {
  if (made_ >= options_.attempts || limit_.is_over()) return false;
  const Deadline due = Deadline::after(backoff_delay(options_, made_, base::thread_random()));
  if (due > limit_.deadline()) return false;
  if (options_.budget != nullptr && !options_.budget->try_take()) return false;
  ++made_;
  return this_fiber::sleep_until(due, limit_);
}

bool is_try_again(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const TryAgain&) {
    return true;
  } catch (...) {
    return false;
  }
}

void rethrow_cause(const std::exception_ptr& failure) {
  std::exception_ptr cause;
  try {
    std::rethrow_exception(failure);
  } catch (const TryAgain& again) {
    cause = again.cause();
  }
  std::rethrow_exception(cause != nullptr ? cause : failure);
}

}  // namespace detail

}  // namespace weft
