// Calls that would block: try without waiting, park until the descriptor is ready, try again.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/deadline.hpp>
#include <weft/detail/one_shot.hpp>
#include <weft/io.hpp>

#include "libs/posix/blocked_calls.hpp"
#include "libs/posix/fiber_state.hpp"

namespace weft::posix {

// Sets errno and returns -1.
int fail(int error) noexcept;

// Returns whether the system accepts the time.
[[nodiscard]] bool is_valid(const timespec& time) noexcept;
// Returns at most a few centuries, which count as forever.
[[nodiscard]] std::int64_t nanoseconds_of(const timespec& time) noexcept;
// Returns the deadline for an absolute time. It reads a clock other than the monotonic clock once,
// now.
[[nodiscard]] Deadline limit_at(clockid_t clock, const timespec& time) noexcept;
// Returns the nanoseconds until the deadline, or 0 if it has passed.
[[nodiscard]] std::int64_t time_left(Deadline limit) noexcept;
// Returns the bytes of all parts together.
[[nodiscard]] std::size_t length_of(const iovec* parts, std::size_t count) noexcept;
// Checks once whether the descriptor is ready for `events` of poll(). Returns 0 if it is; otherwise
// -1 with an errno, which is EAGAIN if the descriptor is not ready.
[[nodiscard]] int check_ready(int descriptor, short events) noexcept;

// Returns why the fiber must not park now, or null if it may.
[[nodiscard]] const char* reason_not_to_park() noexcept;

// The ways in which a wait can end.
enum class Outcome : std::uint8_t { ready, limit, cancelled, context_deadline, refused };
// Returns the errno for a wait that ended before the descriptor was ready.
[[nodiscard]] int error_of(Outcome outcome, int at_limit) noexcept;

// The outcome of a call that the kernel carries out for an io_uring request (one_shot.hpp).
struct Requested {
  Outcome outcome = Outcome::refused;
  int value = 0;  // If the outcome is `ready`: the result, or an errno below 0.
};
// Returns false if calls pass through other functions between this library and the C library. A
// preloaded profiler or a sanitizer, for example, must see each call.
[[nodiscard]] bool may_request() noexcept;
[[nodiscard]] Requested requested(const detail::OneShot& ended, const Until& until) noexcept;
// Calls `request`, which takes an Until and returns a OneShot. Parks.
template <class Request>
Requested make_request(FiberState& state, Deadline limit, Request request) noexcept {
  if (!may_request()) return {};
  const OwnCalls own(state);
  const Until until = Until::ambient();
  return requested(request(until.but_before(limit)), until);
}
// The placeholder for `request` if io_uring has no request for the call.
struct NoRequest {
  detail::OneShot operator()(int /*descriptor*/, const Until& /*until*/) const noexcept {
    return {};
  }
};

// The descriptor of a call. A wait without a request is on a duplicate of the descriptor, which the
// call then uses. So closing the number, giving it to another file, and waits by other callers have
// the same effect as for a thread in the call. No state is kept by number.
class Place {
 public:
  Place(FiberState& state, int descriptor) noexcept : state_(state), descriptor_(descriptor) {}
  // Keeps errno.
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] int descriptor() const noexcept;
  // Returns whether the program has set O_NONBLOCK.
  [[nodiscard]] bool is_non_blocking() const noexcept;
  // Returns when SO_RCVTIMEO or SO_SNDTIMEO ends a call that begins to wait now.
  [[nodiscard]] Deadline limit_by(int option) const noexcept;
  // Makes a call by a request, for which no duplicate is needed. Parks.
  template <class Request>
  [[nodiscard]] Requested request(Request request, Deadline limit) noexcept {
    return make_request(state_, limit,
                        [&](const Until& until) { return request(descriptor_, until); });
  }
  // The first wait after an attempt. It parks without a check of the descriptor, so it may return
  // `ready` by mistake.
  [[nodiscard]] Outcome wait_lightly(io::Ready what, Deadline limit) noexcept;
  // Parks.
  [[nodiscard]] Outcome wait(io::Ready what, Deadline limit) noexcept;
  // Lets other fibers run.
  void give_way() noexcept;

 private:
  using Wait = Result<io::Ready> (io::Watch::*)(io::Ready, const Until&);
  [[nodiscard]] Outcome wait_by(Wait way, io::Ready what, Deadline limit) noexcept;
  [[nodiscard]] bool watch_duplicate() noexcept;

  FiberState& state_;
  const int descriptor_;
  io::Watch watch_;
};

// If the fiber must not park now, makes the call by `plain` and counts it. Otherwise returns
// nothing.
template <class Plain>
auto made_in_place(const Call& call, Plain plain) -> std::optional<decltype(plain())> {
  const char* reason = reason_not_to_park();
  if (reason == nullptr) return std::nullopt;
  const BlockedCall blocked(call, reason);
  return plain();
}

constexpr int kMostRounds = 1000;

// Selects whether a call begins with an attempt or with a wait. If the call will most likely wait,
// the attempt would only cost time.
enum class Begin : std::uint8_t { attempt, wait };

// Repeats `attempt`, which returns -1 with EAGAIN if it would have to wait, until it returns
// anything else. `plain` is the call that waits. If the fiber must not park, `plain` is made in
// place, and counted. `request` lets the kernel make the call while the fiber is parked. All three
// take the descriptor.
template <class Attempt, class Plain, class Request = NoRequest>
ssize_t until_done(Place& place, const Call& call, io::Ready what, int limit_option,
                   Attempt attempt, Plain plain, Begin begin = Begin::attempt,
                   Request request = {}) {
  Deadline limit = Deadline::never();
  for (int round = 0;; ++round) {
    const bool waits_first = round == 0 && begin == Begin::wait && reason_not_to_park() == nullptr;
    if (!waits_first) {
      const ssize_t result = attempt(place.descriptor());
      if (result >= 0 || errno != EAGAIN) return result;
    }
    if (round == 0) {
      if (place.is_non_blocking()) return waits_first ? attempt(place.descriptor()) : fail(EAGAIN);
      limit = place.limit_by(limit_option);
    }
    const char* reason = reason_not_to_park();
    // Other callers may be faster. If the descriptor stays ready but no attempt succeeds, the call
    // waits in place: a datagram socket may have room while its peer has none.
    if (reason == nullptr && round == kMostRounds) reason = "ready, but not for this call";
    if (reason == nullptr && round == 0) {
      const Requested ended = place.request(request, limit);
      if (ended.outcome == Outcome::ready) {
        if (ended.value == -EAGAIN) continue;
        return ended.value >= 0 ? ended.value : fail(-ended.value);
      }
      if (ended.outcome != Outcome::refused) return fail(error_of(ended.outcome, EAGAIN));
    }
    if (reason == nullptr) {
      if (round > 0) place.give_way();
      // Later waits check the descriptor first: of several woken callers, only one succeeds.
      const Outcome outcome =
          round == 0 ? place.wait_lightly(what, limit) : place.wait(what, limit);
      if (outcome == Outcome::ready) continue;
      if (outcome != Outcome::refused) {
        // If no attempt preceded the wait, data that has come by now counts, as on a thread.
        const ssize_t late = waits_first ? attempt(place.descriptor()) : fail(EAGAIN);
        return late >= 0 || errno != EAGAIN ? late : fail(error_of(outcome, EAGAIN));
      }
      reason = "no descriptor to wait on";
    }
    const BlockedCall blocked(call, reason);
    return plain(place.descriptor());
  }
}

// Calls `function`, which returns a number and sets errno, on a helper thread while the fiber is
// parked. If the fiber must not park, or there is no helper, it makes the call in place.
template <class F>
auto on_helper(FiberState& state, const Call& call, F function) {
  const char* reason = reason_not_to_park();
  if (reason == nullptr) {
    int error = errno;
    decltype(function()) result{};
    bool is_made = false;
    try {
      const OwnCalls own(state);
      blocking([&] {
        errno = error;
        result = function();
        error = errno;
        is_made = true;
      });
    } catch (...) {  // NOLINT: then the call is made below.
    }
    if (is_made) {
      errno = error;
      return result;
    }
    reason = "no helper thread";
  }
  const BlockedCall blocked(call, reason);
  return function();
}

}  // namespace weft::posix
