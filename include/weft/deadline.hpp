// A moment of monotonic time that limits a wait.
#pragma once

#include <cstdint>
#include <limits>
#include <weft/detail/durations.hpp>
#include <weft/detail/nanoseconds.hpp>
#include <weft/detail/simulated.hpp>

namespace weft {

// An unlimited duration.
inline constexpr std::chrono::nanoseconds kNever = std::chrono::nanoseconds::max();

// A moment of CLOCK_MONOTONIC (std::chrono::steady_clock), in nanoseconds. In a simulation, it is a
// moment of the simulated clock (weft/sim.hpp). Changes to the wall clock have no effect. A moment
// more than 292 years from the epoch becomes never() or past(). A duration that is NaN counts as 0.
// Context: plain value; no call parks or throws.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // Makes a deadline `duration` from now, as after() does. Calls that take a Deadline therefore
  // also accept durations.
  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> duration) noexcept  // NOLINT: on purpose.
      : Deadline(after(duration)) {}

  // Returns a deadline that never passes, so only the awaited event ends the wait.
  [[nodiscard]] static constexpr Deadline never() noexcept {
    return Deadline(std::numeric_limits<std::int64_t>::max());
  }
  // Returns a deadline that has passed, so a wait with this deadline only polls.
  [[nodiscard]] static constexpr Deadline past() noexcept { return Deadline(0); }
  // Returns the deadline `monotonic` nanoseconds after the clock's epoch; past() if it is negative.
  [[nodiscard]] static constexpr Deadline at_nanoseconds(std::int64_t monotonic) noexcept {
    return Deadline(monotonic < 0 ? 0 : monotonic);
  }
  // Returns the moment `duration` from now; past() if `duration` is negative. Reads the clock.
  template <class Rep, class Period>
  [[nodiscard]] static Deadline after(std::chrono::duration<Rep, Period> duration) noexcept {
    return after_nanoseconds(detail::saturated_nanoseconds(duration).count());
  }
  // Converts a time of steady_clock to a deadline. In a simulation, use weft::Clock instead.
  template <class Duration>
  [[nodiscard]] static Deadline at(std::chrono::time_point<Clock, Duration> time) noexcept {
    if (detail::is_simulated()) [[unlikely]]
      return by_distance(time);
    return at_nanoseconds(detail::saturated_nanoseconds(time.time_since_epoch()).count());
  }
  // Converts a time of another clock to a deadline. Reads the other clock now; later changes to
  // that clock have no effect.
  template <class OtherClock, class Duration>
  [[nodiscard]] static Deadline at(std::chrono::time_point<OtherClock, Duration> time) noexcept {
    return by_distance(time);
  }

  // Returns the current time of the clock in nanoseconds.
  [[nodiscard]] static std::int64_t now_nanoseconds() noexcept {
    if (const detail::Simulated* simulation = detail::simulated()) [[unlikely]]
      return simulation->now();
    return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  }
  // Returns the nanoseconds since the clock's epoch; for never(), the largest std::int64_t.
  [[nodiscard]] constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }
  // Returns whether the deadline is never().
  [[nodiscard]] constexpr bool is_never() const noexcept { return *this == never(); }
  // Returns whether the deadline has passed. Does not read the clock for past() and never().
  [[nodiscard]] bool passed() const noexcept {
    return !is_never() && (nanoseconds_ == 0 || nanoseconds_ <= now_nanoseconds());
  }
  friend constexpr auto operator<=>(Deadline, Deadline) noexcept = default;

 private:
  constexpr explicit Deadline(std::int64_t nanoseconds) noexcept : nanoseconds_(nanoseconds) {}

  template <class OtherClock, class Duration>
  [[nodiscard]] static Deadline by_distance(
      std::chrono::time_point<OtherClock, Duration> time) noexcept {
    const detail::WideNanoseconds now =
        detail::wide_nanoseconds(OtherClock::now().time_since_epoch());
    // The integers are wide, so that neither a distant time nor a difference of times overflows.
    const detail::WideNanoseconds distance =
        detail::wide_nanoseconds(time.time_since_epoch()) - now;
    return distance <= 0 ? past() : after_nanoseconds(detail::clamp_nanoseconds(distance));
  }
  [[nodiscard]] static Deadline after_nanoseconds(std::int64_t duration) noexcept {
    const std::int64_t now = now_nanoseconds();
    if (duration > never().nanoseconds_ - now) return never();
    return Deadline(duration < 0 ? 0 : now + duration);
  }

  std::int64_t nanoseconds_;
};

}  // namespace weft
