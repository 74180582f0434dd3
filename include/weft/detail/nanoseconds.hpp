// Converts durations of any type to nanoseconds, without overflow.
#pragma once

#include <cstdint>
#include <limits>
#include <weft/detail/durations.hpp>

namespace weft::detail {

// 128 bits can hold the difference of any two values that wide_nanoseconds() returns.
__extension__ using WideNanoseconds = __int128;

// The largest result, in seconds. It is about 10^21 years, which no clock reaches.
inline constexpr WideNanoseconds kWideLimit = WideNanoseconds(1) << 95;

// Converts durations of any type and value; conversions by std::chrono may overflow. Rounds up, so
// that no wait ends early. Limits the magnitude to kWideLimit seconds, and returns 0 for NaN.
template <class Rep, class Period>
[[nodiscard]] constexpr WideNanoseconds wide_nanoseconds(
    std::chrono::duration<Rep, Period> duration) noexcept {
  constexpr WideNanoseconds kPerSecond = 1'000'000'000;
  constexpr WideNanoseconds kLargest = kWideLimit * kPerSecond;
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    const auto count = static_cast<long double>(duration.count());
    if (count != count) return 0;
    const auto exact = count * Period::num / static_cast<long double>(Period::den) * 1e9L;
    if (exact >= static_cast<long double>(kLargest)) return kLargest;
    if (exact <= -static_cast<long double>(kLargest)) return -kLargest;
    const auto rounded = static_cast<WideNanoseconds>(exact);
    return static_cast<long double>(rounded) < exact ? rounded + 1 : rounded;
  } else {
    // The factors are below 2^64 and 2^63 in magnitude, so the product is below 2^127.
    const WideNanoseconds product = static_cast<WideNanoseconds>(duration.count()) * Period::num;
    if constexpr (kPerSecond % Period::den == 0) {
      if (product >= kWideLimit) return kLargest;
      if (product <= -kWideLimit) return -kLargest;
      return product * (kPerSecond / Period::den);
    } else {
      const WideNanoseconds seconds = product / Period::den;
      if (seconds >= kWideLimit) return kLargest;
      if (seconds <= -kWideLimit) return -kLargest;
      // `rest` cannot overflow: the remainder is below 2^63, and kPerSecond is below 2^30.
      const WideNanoseconds rest = product % Period::den * kPerSecond;
      const WideNanoseconds rounded_down = seconds * kPerSecond + rest / Period::den;
      return rest % Period::den > 0 ? rounded_down + 1 : rounded_down;
    }
  }
}

// Returns the number nearest to `wide` that fits into 64 bits.
[[nodiscard]] constexpr std::int64_t clamp_nanoseconds(WideNanoseconds wide) noexcept {
  using Limits = std::numeric_limits<std::int64_t>;
  if (wide > Limits::max()) return Limits::max();
  if (wide < Limits::min()) return Limits::min();
  return static_cast<std::int64_t>(wide);
}

// Does the same as std::chrono::ceil<std::chrono::nanoseconds>(), but returns the nearest
// representable value where ceil() would overflow.
template <class Rep, class Period>
[[nodiscard]] constexpr std::chrono::nanoseconds saturated_nanoseconds(
    std::chrono::duration<Rep, Period> duration) noexcept {
  return std::chrono::nanoseconds(clamp_nanoseconds(wide_nanoseconds(duration)));
}

}  // namespace weft::detail
