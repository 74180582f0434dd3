#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <weft/io.hpp>

#include "io/attempt.hpp"

namespace weft::io {

namespace {

constexpr short poll_events(Ready what) noexcept {
  const auto bits = static_cast<unsigned>(what);
  return static_cast<short>(((bits & 1U) != 0 ? POLLIN | POLLRDHUP : 0) |
                            ((bits & 2U) != 0 ? POLLOUT : 0));
}

Ready ready_for(int descriptor, Ready what) noexcept {
  const short events = ready_now(descriptor, poll_events(what));
  unsigned bits = 0;
  if ((events & (POLLIN | POLLRDHUP)) != 0) bits |= static_cast<unsigned>(Ready::read);
  if ((events & POLLOUT) != 0) bits |= static_cast<unsigned>(Ready::write);
  return static_cast<Ready>(bits & static_cast<unsigned>(what));
}

[[gnu::noinline]] CallResult write_quietly(int descriptor, std::span<const std::byte> data) {
  NoPipeSignal quiet;
  return quiet.note(result_of([=] { return ::write(descriptor, data.data(), data.size()); }));
}

[[gnu::noinline]] CallResult read_from(int descriptor, std::span<std::byte> buffer) noexcept {
  return result_of([=] { return ::read(descriptor, buffer.data(), buffer.size()); });
}

[[gnu::noinline]] CallResult open_epoll() noexcept {
  return result_of([] { return ::epoll_create1(EPOLL_CLOEXEC); });
}

[[gnu::noinline]] CallResult control_epoll(int epoll, int operation, int descriptor,
                                           epoll_event& event) noexcept {
  return result_of([&] { return ::epoll_ctl(epoll, operation, descriptor, &event); });
}

[[gnu::noinline]] CallResult look_at_epoll(int epoll, std::span<epoll_event> events) noexcept {
  CallResult result = result_of(
      [=] { return ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 0); });
  if (result.error == 0 && result.value == 0) result.error = EAGAIN;
  return result;
}

}  // namespace

Result<Watch> Watch::start(int descriptor, bool owns) {
  const auto [poller, no_poller] = find_poller();
  if (no_poller) return {.error = no_poller};
  Result<Watch> result;
  IoHandle* handle = nullptr;
  result.error = owns ? poller->add_any(descriptor, handle) : poller->borrow(descriptor, handle);
  if (result.error) return result;
  result.value.handle_ = handle;
  result.value.descriptor_ = descriptor;
  return result;
}

Result<Watch> Watch::borrow(int descriptor) { return start(descriptor, false); }
Result<Watch> Watch::adopt(int descriptor) { return start(descriptor, true); }

void Watch::reset() noexcept {
  if (handle_ != nullptr) handle_->poller().remove(*handle_);
  handle_ = nullptr;
  descriptor_ = -1;
}

void Watch::close() noexcept {
  if (handle_ != nullptr) (void)handle_->close();
}

int Watch::release() noexcept {
  IoHandle* handle = std::exchange(handle_, nullptr);
  descriptor_ = -1;
  return handle != nullptr ? handle->poller().detach(*handle) : -1;
}

Result<Ready> Watch::wait(Ready what, const Until& until) {
  const IoUse use(handle_);
  if (!use) return {.error = Errc::closed};
  if (const Ready now = ready_for(use->descriptor(), what); now != Ready::none) {
    return {.value = now};
  }
  if (what == Ready::either) {
    auto reads = on_readable(*this);
    auto writes = on_writable(*this);
    const std::array<detail::SelectCase*, 2> cases{&reads, &writes};
    for (;;) {
      if (detail::select_one(cases, until) == detail::kNoCase) return {.error = until.reason()};
      if (handle_->is_closed_hint()) return {.error = Errc::closed};
      const Ready now = ready_for(use->descriptor(), what);
      if (now != Ready::none) return {.value = now};
    }
  }
  const bool reads = what == Ready::read;
  const auto attempt = [descriptor = use->descriptor(), what]() noexcept {
    return CallResult{0, ready_for(descriptor, what) != Ready::none ? 0 : EAGAIN};
  };
  const std::error_code error =
      attempt_until(reads ? use->read() : use->write(),
                    reads ? detail::WaitReason::readable : detail::WaitReason::writable, until,
                    false, attempt)
          .error;
  return {.value = error ? Ready::none : what, .error = error};
}

Result<Ready> Watch::wait_for_edge(Ready what, const Until& until) {
  if (what == Ready::either) return wait(what, until);
  const IoUse use(handle_);
  if (!use) return {.error = Errc::closed};
  const bool reads = what == Ready::read;
  const WaitOutcome outcome =
      (reads ? use->read() : use->write())
          .wait(until, reads ? detail::WaitReason::readable : detail::WaitReason::writable);
  const std::error_code error = to_error(outcome);
  return {.value = error ? Ready::none : what, .error = error};
}

Result<WatchSet> WatchSet::create() {
  const CallResult opened = open_epoll();
  if (opened.error != 0) return {.error = opened.code()};
  Result<WatchSet> result;
  auto [watch, error] = Watch::adopt(static_cast<int>(opened.value));
  if (error) close_descriptor(static_cast<int>(opened.value));
  result.value.epoll_ = std::move(watch);
  result.error = error;
  return result;
}

Result<void> WatchSet::control(int operation, int descriptor, Ready what,
                               std::uint64_t key) noexcept {
  const IoUse use(epoll_.handle());
  if (!use) return Errc::closed;
  const auto bits = static_cast<unsigned>(what);
  epoll_event event{};
  if ((bits & 1U) != 0) event.events |= EPOLLIN | EPOLLRDHUP;
  if ((bits & 2U) != 0) event.events |= EPOLLOUT;
  // The kernel always reports an error or a hang-up. If no events are requested, EPOLLET makes it
  // report them once instead of at each wait.
  if (what == Ready::none) event.events = EPOLLET;
  event.data.u64 = key;
  const CallResult result = control_epoll(use->descriptor(), operation, descriptor, event);
  return result.error == 0 ? std::error_code{} : result.code();
}

Result<void> WatchSet::add(int descriptor, Ready what, std::uint64_t key) noexcept {
  return control(EPOLL_CTL_ADD, descriptor, what, key);
}
Result<void> WatchSet::change(int descriptor, Ready what, std::uint64_t key) noexcept {
  return control(EPOLL_CTL_MOD, descriptor, what, key);
}
Result<void> WatchSet::remove(int descriptor) noexcept {
  return control(EPOLL_CTL_DEL, descriptor, Ready::none, 0);
}

Result<std::size_t> WatchSet::wait(std::span<Event> events, const Until& until) {
  const IoUse use(epoll_.handle());
  if (!use) return {.error = Errc::closed};
  if (events.empty()) return {};
  std::array<epoll_event, 64> found;
  const auto room = std::span(found).first(std::min(found.size(), events.size()));
  const auto [count, error] =
      attempt_until(use->read(), detail::WaitReason::readable, until, true,
                    [&]() noexcept { return look_at_epoll(use->descriptor(), room); });
  if (error) return {.error = error};
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    unsigned bits = 0;
    if ((found[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) bits |= 1U;
    if ((found[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) bits |= 2U;
    events[i] = {found[i].data.u64, static_cast<Ready>(bits)};
  }
  return {.value = static_cast<std::size_t>(count)};
}

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  const CallResult opened = open_pipe(ends);
  if (opened.error != 0) return {.error = opened.code()};
  auto [read, no_read] = Watch::adopt(ends[0]);
  if (no_read) {
    close_descriptor(ends[0]);
    close_descriptor(ends[1]);
    return {.error = no_read};
  }
  auto [write, no_write] = Watch::adopt(ends[1]);
  if (no_write) {
    close_descriptor(ends[1]);
    return {.error = no_write};
  }
  return {.value = {std::move(read), std::move(write)}};
}

Result<std::size_t> read_some(Watch& watch, std::span<std::byte> buffer, const Until& until) {
  if (buffer.empty()) return {};
  const IoUse use(watch.handle());
  if (!use) return {.error = Errc::closed};
  const auto [count, error] =
      attempt_until(use->read(), detail::WaitReason::readable, until, true,
                    [&]() noexcept { return read_from(use->descriptor(), buffer); });
  if (error) return {.error = error};
  if (count == 0) return {.error = Errc::end_of_stream};
  return {.value = static_cast<std::size_t>(count)};
}

Result<std::size_t> write_all(Watch& watch, std::span<const std::byte> data, const Until& until) {
  const IoUse use(watch.handle());
  if (!use) return {.error = Errc::closed};
  std::size_t done = 0;
  while (done < data.size()) {
    const auto [count, error] = attempt_until(
        use->write(), detail::WaitReason::writable, until, true,
        [&]() noexcept { return write_quietly(use->descriptor(), data.subspan(done)); });
    if (error) return {.value = done, .error = error};
    done += static_cast<std::size_t>(count);
  }
  return {.value = done};
}

}  // namespace weft::io
