#include <weft/token_bucket.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <weft/detail/exceptions.hpp>
#include <weft/this_fiber.hpp>

namespace weft {

namespace {

// The product of two numbers up to this bound cannot overflow.
constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

void check_option(bool is_good, const char* name, std::int64_t value) {
  if (is_good) return;
  WEFT_THROW(std::invalid_argument("weft::TokenBucketOptions::" + std::string(name) + " = " +
                                   std::to_string(value) + "; must be above 0"));
}

TokenBucketOptions checked(TokenBucketOptions options) {
  options.tokens = std::min(options.tokens, kMost);
  options.burst = std::min(options.burst, kMost);
  check_option(options.tokens > 0, "tokens", 0);
  check_option(options.burst > 0, "burst", 0);
  check_option(options.per.count() > 0, "per", options.per.count());
  return options;
}

}  // namespace

TokenBucket::TokenBucket(const TokenBucketOptions& options)
    : options_(checked(options)),
      parts_(parts_of(options_.burst)),
      refilled_(Deadline::now_nanoseconds()) {}

void TokenBucket::check(std::uint64_t count) const {
  if (count <= options_.burst) return;
  WEFT_THROW(std::invalid_argument("weft::TokenBucket: count = " + std::to_string(count) +
                                   "; must be at most burst = " + std::to_string(options_.burst)));
}

TokenBucket::Parts TokenBucket::parts_at(std::int64_t now) const noexcept {
  if (now <= refilled_) return parts_;
  const Parts come = static_cast<Parts>(now - refilled_) * static_cast<Parts>(options_.tokens);
  return parts_ + std::min(come, parts_of(options_.burst) - parts_);
}

void TokenBucket::refill(std::int64_t now) noexcept {
  parts_ = parts_at(now);
  refilled_ = std::max(refilled_, now);
}

bool TokenBucket::take_at(std::int64_t now, std::uint64_t count) noexcept {
  refill(now);
  if (parts_ < parts_of(count)) return false;
  parts_ -= parts_of(count);
  return true;
}

Deadline TokenBucket::due(std::uint64_t count) noexcept {
  const auto rate = static_cast<Parts>(options_.tokens);
  const Parts missing = parts_of(count) - parts_;
  if (missing <= 0) return Deadline::past();
  const Parts wait = (missing + rate - 1) / rate;
  return Deadline::at_nanoseconds(detail::clamp_nanoseconds(refilled_ + wait));
}

bool TokenBucket::try_take(std::uint64_t count) {
  check(count);
  const std::int64_t now = Deadline::now_nanoseconds();
  const detail::SpinGuard guard(lock_);
  return waiting_ == 0 && take_at(now, count);
}

bool TokenBucket::take_until(const Until& until, std::uint64_t count) {
  check(count);
  detail::give_way_if_due();
  {
    const std::int64_t now = Deadline::now_nanoseconds();
    const detail::SpinGuard guard(lock_);
    if (waiting_ == 0 && take_at(now, count)) return true;
    ++waiting_;
  }
  bool is_taken = false;
  if (turn_.try_acquire_until(until)) {
    for (;;) {
      const std::int64_t now = Deadline::now_nanoseconds();
      lock_.lock();
      is_taken = take_at(now, count);
      const Deadline next = due(count);
      lock_.unlock();
      if (is_taken || !this_fiber::sleep_until(next, until)) break;
    }
    turn_.release();
  }
  const detail::SpinGuard guard(lock_);
  --waiting_;
  return is_taken;
}

std::uint64_t TokenBucket::available_hint() const noexcept {
  const std::int64_t now = Deadline::now_nanoseconds();
  const detail::SpinGuard guard(lock_);
  return static_cast<std::uint64_t>(parts_at(now) / options_.per.count());
}

}  // namespace weft
