#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <weft/deadline.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Deadline;

TEST_SUITE_BEGIN("base/deadline");

TEST_CASE("Deadline::never() has not passed, and Deadline::past() has passed") {
  CHECK(Deadline::never().is_never());
  CHECK(!Deadline::never().passed());
  CHECK(Deadline::past().passed());
  CHECK(Deadline::at_nanoseconds(-1).passed());
}

TEST_CASE("a duration that is too long to represent becomes Deadline::never()") {
  CHECK(Deadline::after(std::chrono::hours::max()).is_never());
  CHECK(Deadline::after(std::chrono::nanoseconds::max()).is_never());
  CHECK(Deadline::after(std::chrono::duration<double>::max()).is_never());
  CHECK(Deadline::after(std::chrono::duration<double>(std::numeric_limits<double>::infinity()))
            .is_never());
  CHECK(Deadline::at(Deadline::Clock::time_point::max()).is_never());
}

TEST_CASE("a deadline that is made from a zero or negative duration has already passed") {
  CHECK(Deadline::after(0ns).passed());
  CHECK(Deadline::after(-1ns).passed());
  CHECK(Deadline::after(std::chrono::hours::min()).passed());
  CHECK(Deadline::after(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()))
            .passed());
  CHECK(Deadline::at(Deadline::Clock::time_point::min()).passed());
}

TEST_CASE("a deadline rounds up a fraction of a nanosecond") {
  const auto before = Deadline::now_nanoseconds();
  const Deadline deadline = Deadline::after(std::chrono::duration<double, std::nano>(0.25));
  CHECK(deadline.nanoseconds() > before);
}

TEST_CASE("a time point of another clock is converted relative to the current time of that clock") {
  const Deadline deadline = Deadline::at(std::chrono::system_clock::now() + 1h);
  CHECK(deadline > Deadline::after(59min));
  CHECK(deadline <= Deadline::after(1h));
  CHECK(Deadline::at(std::chrono::system_clock::time_point::max()) > Deadline::after(24h));
  CHECK(Deadline::at(std::chrono::system_clock::now() - 1h).passed());
}

TEST_CASE("a deadline at the epoch or the smallest time point of another clock has passed") {
  CHECK(Deadline::at(std::chrono::system_clock::time_point{}).passed());
  CHECK(Deadline::at(std::chrono::system_clock::time_point::min()).passed());
}

TEST_CASE(
    "a time point of another clock becomes never() or past() if nanoseconds cannot represent it") {
  using std::chrono::year;
  CHECK(Deadline::at(std::chrono::sys_days(year{9999} / 12 / 31)).is_never());
  CHECK(Deadline::at(std::chrono::sys_days::max()).is_never());
  CHECK(Deadline::at(std::chrono::sys_days(year{1} / 1 / 1)).passed());
  CHECK(Deadline::at(std::chrono::sys_days::min()).passed());
  CHECK(Deadline::at(std::chrono::sys_seconds::max()).is_never());
}

// A clock whose epoch is more than 64 bits of nanoseconds ago.
struct AncientClock {
  using rep = std::int64_t;
  using period = std::ratio<1>;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<AncientClock>;
  static time_point now() noexcept { return time_point(duration(100'000'000'000)); }
};

TEST_CASE(
    "a time point of a clock whose epoch is in the distant past is converted without overflow") {
  const Deadline before = Deadline::after(1h);
  const Deadline deadline = Deadline::at(AncientClock::now() + 1h);
  CHECK(deadline >= before);
  CHECK(deadline <= Deadline::after(1h));
  CHECK(Deadline::at(AncientClock::now() - 1s).passed());
  CHECK(Deadline::at(AncientClock::time_point::max()).is_never());
}

TEST_CASE(
    "a duration with an unusual period is converted correctly, or becomes never() if it cannot be "
    "represented") {
  using Frames = std::chrono::duration<std::int64_t, std::ratio<1, 60>>;
  constexpr std::int64_t kYear = 60LL * 31'556'952;
  const Deadline in_120_years = Deadline::after(Frames(kYear * 120));
  CHECK(in_120_years >= Deadline::after(std::chrono::seconds(119LL * 31'556'952)));
  CHECK(in_120_years <= Deadline::after(std::chrono::seconds(121LL * 31'556'952)));
  CHECK(Deadline::after(Frames(kYear * 400)).is_never());
  CHECK(Deadline::after(Frames::max()).is_never());
  CHECK(Deadline::after(Frames::min()).passed());
}

TEST_CASE("durations of every type are rounded up to nanoseconds without overflow") {
  using std::chrono::duration;
  using weft::detail::saturated_nanoseconds;
  using Nanoseconds = std::chrono::nanoseconds;
  static_assert(saturated_nanoseconds(3ms) == 3'000'000ns);
  static_assert(saturated_nanoseconds(duration<int, std::ratio<1, 3>>(1)) == 333'333'334ns);
  static_assert(saturated_nanoseconds(duration<int, std::ratio<1, 3>>(-1)) == -333'333'333ns);
  static_assert(saturated_nanoseconds(duration<int, std::pico>(1)) == 1ns);
  static_assert(saturated_nanoseconds(duration<int, std::pico>(-1)) == 0ns);
  static_assert(saturated_nanoseconds(duration<double>(1.5)) == 1'500'000'000ns);
  static_assert(saturated_nanoseconds(duration<float, std::nano>(0.25F)) == 1ns);
  static_assert(saturated_nanoseconds(std::chrono::years(292)) > 0ns);
  static_assert(saturated_nanoseconds(std::chrono::years(293)) == Nanoseconds::max());
  static_assert(saturated_nanoseconds(std::chrono::years(-293)) == Nanoseconds::min());
  static_assert(saturated_nanoseconds(duration<std::uint64_t, std::exa>::max()) ==
                Nanoseconds::max());
  static_assert(saturated_nanoseconds(duration<std::int64_t, std::atto>::max()) == 9'223'372'037ns);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  static_assert(saturated_nanoseconds(duration<double>(kInfinity)) == Nanoseconds::max());
  static_assert(saturated_nanoseconds(duration<double>(-kInfinity)) == Nanoseconds::min());
  static_assert(saturated_nanoseconds(duration<double>(kNoNumber)) == 0ns);
  CHECK(saturated_nanoseconds(duration<long double>::max()) == Nanoseconds::max());
  CHECK(saturated_nanoseconds(duration<long double, std::exa>::min()) == Nanoseconds::min());
}

TEST_SUITE_END();

}  // namespace
