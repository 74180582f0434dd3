#include "libs/posix/waiting.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <weft/context.hpp>
#include <weft/detail/first_use.hpp>
#include <weft/this_fiber.hpp>

#include "libs/posix/locks.hpp"
#include "libs/posix/real.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::poll)> real_poll("poll");

bool is_of_c_library(const char* function) noexcept {
  Dl_info info{};
  const void* found = ::dlsym(RTLD_NEXT, function);
  if (found == nullptr || ::dladdr(found, &info) == 0) return false;
  std::string_view file = info.dli_fname;
  file = file.substr(file.rfind('/') + 1);
  return std::ranges::any_of(std::array{"libc.", "libc-", "libpthread", "ld-musl"},
                             [file](const char* begin) { return file.starts_with(begin); });
}

bool reach_c_library() noexcept {
  return std::ranges::all_of(std::array{"recv", "recvfrom", "recvmsg", "read", "readv", "poll"},
                             &is_of_c_library);
}

}  // namespace

bool may_request() noexcept { return detail::computed_once<&reach_c_library>(); }

int fail(int error) noexcept {
  errno = error;
  return -1;
}

bool is_valid(const timespec& time) noexcept {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000;
}

std::int64_t nanoseconds_of(const timespec& time) noexcept {
  constexpr std::int64_t kMost = INT64_MAX / 1'000'000'000 - 1;  // Seconds.
  return std::min<std::int64_t>(time.tv_sec, kMost) * 1'000'000'000 + time.tv_nsec;
}

Deadline limit_at(clockid_t clock, const timespec& time) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return Deadline::after(std::chrono::nanoseconds(nanoseconds_of(time) - nanoseconds_of(now)));
}

std::int64_t time_left(Deadline limit) noexcept {
  return std::max<std::int64_t>(limit.nanoseconds() - Deadline::now_nanoseconds(), 0);
}

std::size_t length_of(const iovec* parts, std::size_t count) noexcept {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += parts[i].iov_len;
  return sum;
}

int check_ready(int descriptor, short events) noexcept {
  pollfd look{descriptor, events, 0};
  const int ready = real_poll(&look, nfds_t{1}, 0);
  if (ready == 0) return fail(EAGAIN);
  return ready < 0 ? ready : 0;
}

const char* reason_not_to_park() noexcept {
  if (locks_held() > 0) {
    const FiberState* state = current_scope();
    if (state == nullptr || state->carry_scopes == 0 || locks_that_stay() > 0)
      return "a pthread lock is held";
  }
  return this_fiber::may_switch() ? nullptr : "a NoSwitch scope";
}

int error_of(Outcome outcome, int at_limit) noexcept {
  if (outcome == Outcome::cancelled) return ECANCELED;
  return outcome == Outcome::context_deadline ? ETIMEDOUT : at_limit;
}

Requested requested(const detail::OneShot& ended, const Until& until) noexcept {
  switch (ended.end) {
    case detail::OneShotEnd::done:
      return {Outcome::ready, ended.value};
    case detail::OneShotEnd::stopped:
      return {Outcome::cancelled};
    case detail::OneShotEnd::timed_out:
      return {until.deadline().passed() ? Outcome::context_deadline : Outcome::limit};
    case detail::OneShotEnd::refused:
      break;
  }
  return {};
}

Place::~Place() {
  const int error = errno;
  const OwnCalls own(state_);
  watch_ = {};
  errno = error;
}

int Place::descriptor() const noexcept {
  const int duplicate = watch_.native_handle();
  return duplicate >= 0 ? duplicate : descriptor_;
}

bool Place::is_non_blocking() const noexcept {
  const int flags = ::fcntl(descriptor(), F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK) != 0;
}

Deadline Place::limit_by(int option) const noexcept {
  timeval limit{};
  socklen_t size = sizeof limit;
  if (::getsockopt(descriptor(), SOL_SOCKET, option, &limit, &size) != 0) return Deadline::never();
  if (limit.tv_sec == 0 && limit.tv_usec == 0) return Deadline::never();
  return Deadline::after(std::chrono::seconds(limit.tv_sec) +
                         std::chrono::microseconds(limit.tv_usec));
}

bool Place::watch_duplicate() noexcept {
  if (watch_.native_handle() >= 0) return true;
  const int duplicate = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return false;
  auto [watch, error] = io::Watch::adopt(duplicate);
  if (error) {
    ::close(duplicate);
    return false;
  }
  watch_ = std::move(watch);
  return true;
}

void Place::give_way() noexcept {
  const OwnCalls own(state_);
  this_fiber::yield();
}

Outcome Place::wait(io::Ready what, Deadline limit) noexcept {
  return wait_by(&io::Watch::wait, what, limit);
}

Outcome Place::wait_lightly(io::Ready what, Deadline limit) noexcept {
  return wait_by(&io::Watch::wait_for_edge, what, limit);
}

Outcome Place::wait_by(Wait way, io::Ready what, Deadline limit) noexcept {
  const OwnCalls own(state_);
  if (!watch_duplicate()) return Outcome::refused;
  const Until until = this_fiber::until();
  const std::error_code error = (watch_.*way)(what, until.but_before(limit)).error;
  if (!error) return Outcome::ready;
  if (error == Errc::cancelled) return Outcome::cancelled;
  if (error != Errc::timed_out) return Outcome::refused;
  return until.deadline().passed() ? Outcome::context_deadline : Outcome::limit;
}

}  // namespace weft::posix
