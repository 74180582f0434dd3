// The model's time.
#pragma once

#include <cstdint>
#include <limits>

namespace weft::bench::model {

// Picoseconds, whole ones: sums are exact, and the same with every compiler.
using Time = std::int64_t;

inline constexpr Time kNanosecond = 1'000;
inline constexpr Time kMicrosecond = 1'000 * kNanosecond;
inline constexpr Time kMillisecond = 1'000 * kMicrosecond;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

[[nodiscard]] constexpr Time from_nanoseconds(double nanoseconds) {
  return static_cast<Time>(nanoseconds * static_cast<double>(kNanosecond));
}
[[nodiscard]] constexpr double to_nanoseconds(Time time) {
  return static_cast<double>(time) / static_cast<double>(kNanosecond);
}

}  // namespace weft::bench::model
