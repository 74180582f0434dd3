#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <weft/deadline.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Deadline;

TEST_SUITE_BEGIN("base/deadline");

TEST_CASE("never does not pass, the past has passed") {
  CHECK(Deadline::never().is_never());
  CHECK(!Deadline::never().passed());
  CHECK(Deadline::past().passed());
  CHECK(Deadline::at_nanoseconds(-1).passed());
}

TEST_CASE("durations that are too long become never") {
  CHECK(Deadline::after(std::chrono::hours::max()).is_never());
  CHECK(Deadline::after(std::chrono::nanoseconds::max()).is_never());
  CHECK(Deadline::after(std::chrono::duration<double>::max()).is_never());
  CHECK(Deadline::after(std::chrono::duration<double>(std::numeric_limits<double>::infinity()))
            .is_never());
  CHECK(Deadline::at(Deadline::Clock::time_point::max()).is_never());
}

TEST_CASE("durations that are not positive have passed") {
  CHECK(Deadline::after(0ns).passed());
  CHECK(Deadline::after(-1ns).passed());
  CHECK(Deadline::after(std::chrono::hours::min()).passed());
  CHECK(Deadline::after(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()))
            .passed());
  CHECK(Deadline::at(Deadline::Clock::time_point::min()).passed());
}

TEST_CASE("a fraction of a nanosecond is rounded up") {
  const auto before = Deadline::now_nanoseconds();
  const Deadline deadline = Deadline::after(std::chrono::duration<double, std::nano>(0.25));
  CHECK(deadline.nanoseconds() > before);
}

TEST_CASE("another clock's time is taken relative to that clock's now") {
  const Deadline deadline = Deadline::at(std::chrono::system_clock::now() + 1h);
  CHECK(deadline > Deadline::after(59min));
  CHECK(deadline <= Deadline::after(1h));
  CHECK(Deadline::at(std::chrono::system_clock::time_point::max()) > Deadline::after(24h));
  CHECK(Deadline::at(std::chrono::system_clock::now() - 1h).passed());
}

TEST_CASE("the beginning of another clock's time has passed") {
  CHECK(Deadline::at(std::chrono::system_clock::time_point{}).passed());
  CHECK(Deadline::at(std::chrono::system_clock::time_point::min()).passed());
}

TEST_SUITE_END();

}  // namespace
