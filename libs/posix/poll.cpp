// Waits for several descriptors: poll, select, epoll_wait.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <vector>
#include <weft/context.hpp>

#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::poll)> real_poll("poll");
constinit Real<decltype(::ppoll)> real_ppoll("ppoll");
constinit Real<decltype(::select)> real_select("select");
constinit Real<decltype(::pselect)> real_pselect("pselect");
constinit Real<decltype(::epoll_wait)> real_epoll_wait("epoll_wait");
constinit Real<decltype(::epoll_pwait)> real_epoll_pwait("epoll_pwait");

constexpr short kReads = POLLIN | POLLRDNORM;
constexpr short kWrites = POLLOUT | POLLWRNORM;

io::Ready wanted(short events) noexcept {
  return static_cast<io::Ready>(((events & kReads) != 0 ? 1 : 0) |
                                ((events & kWrites) != 0 ? 2 : 0));
}

// Duplicates of the polled descriptors, so that the wait refers to the same files until it ends.
class Duplicates {
 public:
  explicit Duplicates(std::span<const pollfd> polled) : copies_(polled.begin(), polled.end()) {
    for (pollfd& copy : copies_) {
      if (copy.fd < 0) continue;
      copy.fd = is_complete_ ? ::fcntl(copy.fd, F_DUPFD_CLOEXEC, 0) : -1;
      is_complete_ = is_complete_ && copy.fd >= 0;
    }
  }
  ~Duplicates() {
    for (const pollfd& copy : copies_) {
      if (copy.fd >= 0) ::close(copy.fd);
    }
  }
  Duplicates(const Duplicates&) = delete;
  Duplicates& operator=(const Duplicates&) = delete;

  // Returns false if the process had too few free descriptors for the duplicates.
  [[nodiscard]] bool is_complete() const noexcept { return is_complete_; }
  [[nodiscard]] std::vector<pollfd>& all() noexcept { return copies_; }

 private:
  std::vector<pollfd> copies_;
  bool is_complete_ = true;
};

// Parks until one of the descriptors is ready, and then polls. Returns the result of poll(), a
// negated errno, or nothing if the fiber cannot wait for these descriptors.
std::optional<int> wait_for_some(Duplicates& duplicates, std::span<pollfd> polled, Deadline limit) {
  auto set = io::WatchSet::create();
  if (set.error) return std::nullopt;
  std::vector<pollfd>& copies = duplicates.all();
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].fd < 0) continue;
    if (!set.value.add(copies[i].fd, wanted(copies[i].events), i)) return std::nullopt;
  }
  for (;;) {
    const Until until = this_fiber::until();
    std::array<io::WatchSet::Event, 1> events;
    const auto waited = set.value.wait(events, until.but_before(limit));
    const int ready = real_poll(copies.data(), copies.size(), 0);
    if (ready < 0) return -errno;
    if (ready != 0) {
      for (std::size_t i = 0; i < copies.size(); ++i) polled[i].revents = copies[i].revents;
      return ready;
    }
    if (!waited.error) continue;
    if (waited.error == Errc::cancelled) return -ECANCELED;
    if (waited.error != Errc::timed_out) return std::nullopt;
    return until.deadline().passed() ? -ETIMEDOUT : 0;
  }
}

// Also returns nothing if memory runs out, because a helper thread needs less memory.
std::optional<int> wait_for_several(FiberState& state, std::span<pollfd> polled, Deadline limit) {
  try {
    const OwnCalls own(state);
    Duplicates duplicates(polled);
    if (duplicates.is_complete()) return wait_for_some(duplicates, polled, limit);
  } catch (const std::bad_alloc&) {  // NOLINT: see above.
  }
  return std::nullopt;
}

// Does the same with io_uring requests, which need no duplicates.
std::optional<int> request_poll(FiberState& state, std::span<pollfd> polled,
                                Deadline limit) noexcept {
  const Requested ended = make_request(
      state, limit, [&](const Until& until) { return detail::poll_once(polled, until); });
  if (ended.outcome == Outcome::refused) return std::nullopt;
  if (ended.outcome == Outcome::ready) return ended.value;
  for (pollfd& one : polled) one.revents = 0;
  return ended.outcome == Outcome::limit ? 0 : -error_of(ended.outcome, 0);
}

// Does the same for a single descriptor, without a set.
std::optional<int> wait_for_one(FiberState& state, pollfd& polled, Deadline limit) noexcept {
  Place place(state, polled.fd);
  for (;;) {
    const Outcome outcome = place.wait_lightly(wanted(polled.events), limit);
    if (outcome == Outcome::refused) return std::nullopt;
    pollfd copy{place.descriptor(), polled.events, 0};
    const int ready = real_poll(&copy, nfds_t{1}, 0);
    if (ready < 0) return -errno;
    if (ready > 0) polled.revents = copy.revents;
    if (ready > 0 || outcome == Outcome::limit) return ready;
    if (outcome != Outcome::ready) return -error_of(outcome, 0);
  }
}

// Returns whether a Watch cannot wait for the events: urgent data, or a hang-up alone. POLLERR is
// allowed, since the system always reports errors; libpq requests it.
bool is_odd(const pollfd& polled) noexcept {
  constexpr short kKnown = kReads | kWrites | POLLRDHUP | POLLERR | POLLHUP | POLLNVAL;
  return polled.fd >= 0 &&
         ((polled.events & ~kKnown) != 0 || (polled.events & (kReads | kWrites)) == 0);
}

int milliseconds_left(Deadline limit) noexcept {
  if (limit.is_never()) return -1;
  return static_cast<int>(
      std::min<std::int64_t>((time_left(limit) + 999'999) / 1'000'000, INT_MAX));
}

int poll_in_scope(FiberState& state, const Call& call, std::span<pollfd> polled, Deadline limit) {
  const bool may_park = reason_not_to_park() == nullptr;
  const bool is_one = polled.size() == 1 && polled[0].fd >= 0;
  const bool can_request = may_park && !limit.passed();
  // Most likely no answer has come yet, and the requests check as well.
  const int asked = std::exchange(state.asked, -1);
  const bool waits_first =
      can_request && asked >= 0 &&
      std::ranges::any_of(polled, [asked](const pollfd& one) { return one.fd == asked; });
  std::optional<int> result;
  if (waits_first) result = request_poll(state, polled, limit);
  if (!result) {
    const int ready = real_poll(polled.data(), polled.size(), 0);
    if (ready != 0 || limit.passed()) return ready;
    if (can_request && !waits_first) result = request_poll(state, polled, limit);
  }
  if (!result && may_park && std::ranges::none_of(polled, is_odd))
    result = is_one && wanted(polled[0].events) != io::Ready::either
                 ? wait_for_one(state, polled[0], limit)
                 : wait_for_several(state, polled, limit);
  const auto plain = [&] {
    return real_poll(polled.data(), polled.size(), milliseconds_left(limit));
  };
  if (!result) return on_helper(state, call, plain);
  return *result < 0 ? fail(-*result) : *result;
}

std::chrono::nanoseconds duration_of(const timespec& time) noexcept {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Deadline limit_of(const timespec* time) noexcept {
  return time == nullptr ? Deadline::never() : Deadline::after(duration_of(*time));
}

Deadline after_milliseconds(int milliseconds) noexcept {
  return milliseconds < 0 ? Deadline::never()
                          : Deadline::after(std::chrono::milliseconds(milliseconds));
}

// Converts the sets of select() to the array of poll(), and back.
struct Sets {
  fd_set* reads;
  fd_set* writes;
  fd_set* urgent;

  [[nodiscard]] std::vector<pollfd> to_poll(int count) const {
    std::vector<pollfd> polled;
    for (int fd = 0; fd < count; ++fd) {
      const int events = (has(reads, fd) ? POLLIN : 0) | (has(writes, fd) ? POLLOUT : 0) |
                         (has(urgent, fd) ? POLLPRI : 0);
      if (events != 0) polled.push_back({fd, static_cast<short>(events), 0});
    }
    return polled;
  }
  int from_poll(const std::vector<pollfd>& polled) const noexcept {
    int count = 0;
    for (const pollfd& one : polled) {
      count += leave(reads, one, POLLIN, POLLIN | POLLHUP | POLLERR);
      count += leave(writes, one, POLLOUT, POLLOUT | POLLERR);
      count += leave(urgent, one, POLLPRI, POLLPRI);
    }
    return count;
  }

 private:
  static bool has(const fd_set* set, int fd) noexcept {
    return set != nullptr && FD_ISSET(fd, set);
  }
  static int leave(fd_set* set, const pollfd& one, int asked, int counts) noexcept {
    if ((one.events & asked) == 0) return 0;
    if ((one.revents & counts) != 0) return 1;
    FD_CLR(one.fd, set);
    return 0;
  }
};

int select_in_scope(FiberState& state, const Call& call, int count, const Sets& sets,
                    Deadline limit) {
  std::vector<pollfd> polled = sets.to_poll(count);
  const int ready = poll_in_scope(state, call, polled, limit);
  if (ready < 0) return ready;
  if (std::ranges::any_of(polled, [](const pollfd& one) { return (one.revents & POLLNVAL) != 0; }))
    return fail(EBADF);
  return sets.from_poll(polled);
}

int wait_for_events(FiberState& state, const Call& call, int epoll, epoll_event* events, int most,
                    int milliseconds) {
  const Deadline limit = after_milliseconds(milliseconds);
  for (;;) {
    const int found = real_epoll_wait(epoll, events, most, 0);
    if (found != 0 || limit.passed()) return found;
    pollfd polled{epoll, POLLIN, 0};
    const int ready = poll_in_scope(state, call, {&polled, 1}, limit);
    if (ready <= 0) return ready;
  }
}

// A call with a signal mask blocks, because the mask is the thread's.
template <class Wait>
int wait_with_mask(const Call& call, Wait wait) {
  const BlockedCall blocked(call, "a mask of signals");
  return wait();
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT int poll(pollfd* polled, nfds_t count, int milliseconds) {
  FiberState* state = current_scope();
  if (state == nullptr || milliseconds == 0) {
    const int ready = real_poll(polled, count, milliseconds);
    // A receive of the data that has arrived need not wait.
    if (state != nullptr && ready > 0) state->asked = -1;
    return ready;
  }
  return poll_in_scope(*state, {"poll", __builtin_return_address(0)}, {polled, count},
                       after_milliseconds(milliseconds));
}

WEFT_POSIX_EXPORT int ppoll(pollfd* polled, nfds_t count, const timespec* time,
                            const sigset_t* mask) {
  FiberState* state = time != nullptr && !is_valid(*time) ? nullptr : current_scope();
  if (state == nullptr) return real_ppoll(polled, count, time, mask);
  const Call call{"ppoll", __builtin_return_address(0)};
  if (mask != nullptr)
    return wait_with_mask(call, [=] { return real_ppoll(polled, count, time, mask); });
  return poll_in_scope(*state, call, {polled, count}, limit_of(time));
}

// Stores the remaining time in `time`, as Linux does.
WEFT_POSIX_EXPORT int select(int count, fd_set* reads, fd_set* writes, fd_set* urgent,
                             timeval* time) {
  const bool is_plain = count < 0 || (time != nullptr && (time->tv_sec < 0 || time->tv_usec < 0));
  FiberState* state = is_plain ? nullptr : current_scope();
  if (state == nullptr) return real_select(count, reads, writes, urgent, time);
  const weft::Deadline limit =
      time == nullptr ? weft::Deadline::never()
                      : weft::Deadline::after(std::chrono::seconds(time->tv_sec) +
                                              std::chrono::microseconds(time->tv_usec));
  const int result = select_in_scope(*state, {"select", __builtin_return_address(0)}, count,
                                     {reads, writes, urgent}, limit);
  if (time != nullptr) {
    const std::int64_t left = time_left(limit);
    *time = {left / 1'000'000'000, left % 1'000'000'000 / 1000};
  }
  return result;
}

WEFT_POSIX_EXPORT int pselect(int count, fd_set* reads, fd_set* writes, fd_set* urgent,
                              const timespec* time, const sigset_t* mask) {
  const bool is_plain = count < 0 || (time != nullptr && !is_valid(*time));
  FiberState* state = is_plain ? nullptr : current_scope();
  if (state == nullptr) return real_pselect(count, reads, writes, urgent, time, mask);
  const Call call{"pselect", __builtin_return_address(0)};
  if (mask != nullptr) {
    return wait_with_mask(call,
                          [=] { return real_pselect(count, reads, writes, urgent, time, mask); });
  }
  return select_in_scope(*state, call, count, {reads, writes, urgent}, limit_of(time));
}

WEFT_POSIX_EXPORT int epoll_wait(int epoll, epoll_event* events, int most, int milliseconds) {
  FiberState* state = milliseconds == 0 || most <= 0 ? nullptr : current_scope();
  if (state == nullptr) return real_epoll_wait(epoll, events, most, milliseconds);
  return wait_for_events(*state, {"epoll_wait", __builtin_return_address(0)}, epoll, events, most,
                         milliseconds);
}

WEFT_POSIX_EXPORT int epoll_pwait(int epoll, epoll_event* events, int most, int milliseconds,
                                  const sigset_t* mask) {
  FiberState* state = milliseconds == 0 || most <= 0 ? nullptr : current_scope();
  if (state == nullptr) return real_epoll_pwait(epoll, events, most, milliseconds, mask);
  const Call call{"epoll_pwait", __builtin_return_address(0)};
  if (mask == nullptr) return wait_for_events(*state, call, epoll, events, most, milliseconds);
  return wait_with_mask(call,
                        [=] { return real_epoll_pwait(epoll, events, most, milliseconds, mask); });
}

// Programs compiled with _FORTIFY_SOURCE call this function; see receive.cpp.
WEFT_POSIX_EXPORT int __poll_chk(pollfd* polled, nfds_t count, int milliseconds, size_t room) {
  static constinit Real<int(pollfd*, nfds_t, int, size_t)> real("__poll_chk");
  return room / sizeof *polled < count ? real(polled, count, milliseconds, room)
                                       : ::poll(polled, count, milliseconds);
}

}  // extern "C"

WEFT_POSIX_HOOK(poll);
WEFT_POSIX_HOOK(ppoll);
WEFT_POSIX_HOOK(select);
WEFT_POSIX_HOOK(pselect);
WEFT_POSIX_HOOK(epoll_wait);
WEFT_POSIX_HOOK(epoll_pwait);

namespace weft::posix {

std::span<const Hook> poll_hooks() noexcept {
  static const std::array hooks{WEFT_POSIX_ENTRY(poll),       WEFT_POSIX_ENTRY(ppoll),
                                WEFT_POSIX_ENTRY(select),     WEFT_POSIX_ENTRY(pselect),
                                WEFT_POSIX_ENTRY(epoll_wait), WEFT_POSIX_ENTRY(epoll_pwait)};
  return hooks;
}

}  // namespace weft::posix
