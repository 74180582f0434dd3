// Calls that sleep.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <weft/context.hpp>
#include <weft/this_fiber.hpp>

#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::nanosleep)> real_nanosleep("nanosleep");
constinit Real<decltype(::clock_nanosleep)> real_clock_nanosleep("clock_nanosleep");
constinit Real<decltype(::usleep)> real_usleep("usleep");
constinit Real<decltype(::sleep)> real_sleep("sleep");

// Returns 0 if the fiber slept for the whole time; otherwise why the sleep ended.
int sleep_parked(FiberState& state, Deadline limit) noexcept {
  const OwnCalls own(state);
  const Until until = this_fiber::until();
  if (this_fiber::sleep_until(limit, until)) return 0;
  return until.reason() == Errc::cancelled ? ECANCELED : ETIMEDOUT;
}

void leave_rest(Deadline limit, timespec* rest) noexcept {
  if (rest == nullptr) return;
  const std::int64_t left = time_left(limit);
  *rest = {left / 1'000'000'000, left % 1'000'000'000};
}

Deadline after(std::int64_t nanoseconds) noexcept {
  return Deadline::after(std::chrono::nanoseconds(nanoseconds));
}

Deadline limit_of(clockid_t clock, int flags, const timespec& time) noexcept {
  if ((flags & TIMER_ABSTIME) == 0) return after(nanoseconds_of(time));
  return limit_at(clock, time);
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT int nanosleep(const timespec* time, timespec* rest) {
  FiberState* state = current_scope();
  if (state == nullptr || !is_valid(*time)) return real_nanosleep(time, rest);
  if (const auto made = made_in_place({"nanosleep", __builtin_return_address(0)},
                                      [=] { return real_nanosleep(time, rest); }))
    return *made;
  const weft::Deadline limit = after(nanoseconds_of(*time));
  const int error = sleep_parked(*state, limit);
  if (error == 0) return 0;
  leave_rest(limit, rest);
  return fail(error);
}

WEFT_POSIX_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                                      timespec* rest) {
  FiberState* state =
      clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME ? current_scope() : nullptr;
  if (state == nullptr || !is_valid(*time)) return real_clock_nanosleep(clock, flags, time, rest);
  if (const auto made = made_in_place({"clock_nanosleep", __builtin_return_address(0)}, [=] {
        return real_clock_nanosleep(clock, flags, time, rest);
      }))
    return *made;
  const int error_before = errno;
  const weft::Deadline limit = limit_of(clock, flags, *time);
  const int error = sleep_parked(*state, limit);
  if (error != 0 && (flags & TIMER_ABSTIME) == 0) leave_rest(limit, rest);
  errno = error_before;  // The call returns its error and keeps errno.
  return error;
}

WEFT_POSIX_EXPORT int usleep(useconds_t microseconds) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_usleep(microseconds);
  if (const auto made = made_in_place({"usleep", __builtin_return_address(0)},
                                      [=] { return real_usleep(microseconds); }))
    return *made;
  const int error = sleep_parked(*state, after(std::int64_t{microseconds} * 1000));
  return error == 0 ? 0 : fail(error);
}

WEFT_POSIX_EXPORT unsigned sleep(unsigned seconds) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_sleep(seconds);
  if (const auto made = made_in_place({"sleep", __builtin_return_address(0)},
                                      [=] { return real_sleep(seconds); }))
    return *made;
  const weft::Deadline limit = after(std::int64_t{seconds} * 1'000'000'000);
  if (sleep_parked(*state, limit) == 0) return 0;
  timespec rest{};
  leave_rest(limit, &rest);
  return static_cast<unsigned>(rest.tv_sec) + (rest.tv_nsec > 0 ? 1 : 0);
}

}  // extern "C"

WEFT_POSIX_HOOK(nanosleep);
WEFT_POSIX_HOOK(clock_nanosleep);
WEFT_POSIX_HOOK(usleep);
WEFT_POSIX_HOOK(sleep);

namespace weft::posix {

std::span<const Hook> sleep_hooks() noexcept {
  static const std::array hooks{WEFT_POSIX_ENTRY(nanosleep), WEFT_POSIX_ENTRY(clock_nanosleep),
                                WEFT_POSIX_ENTRY(usleep), WEFT_POSIX_ENTRY(sleep)};
  return hooks;
}

}  // namespace weft::posix
