#include "io/attempt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <ctime>

#include "io/kernel.hpp"

namespace weft::io {

namespace {

sigset_t pipe_signal() noexcept {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  return signals;
}

}  // namespace

[[gnu::noinline]] CallResult open_pipe(std::array<int, 2>& ends) noexcept {
  return result_of([&] { return ::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK); });
}

[[gnu::noinline]] NoPipeSignal::NoPipeSignal() noexcept {
  const sigset_t signals = pipe_signal();
  sigset_t pending;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  ::sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) != 0;
}

[[gnu::noinline]] NoPipeSignal::~NoPipeSignal() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

[[gnu::noinline]] CallResult NoPipeSignal::note(CallResult result) noexcept {
  if (result.error == EPIPE && !was_pending_) {
    const sigset_t signals = pipe_signal();
    const timespec now{};
    (void)::sigtimedwait(&signals, nullptr, &now);
  }
  return result;
}

[[gnu::noinline]] short ready_now(int descriptor, short events) noexcept {
  if (Kernel* kernel = simulated_kernel(descriptor)) [[unlikely]]
    return kernel->ready_now(descriptor, events);
  pollfd state{descriptor, events, 0};
  const CallResult result = result_of([&] { return ::poll(&state, 1, 0); });
  // If the poll fails, the later call reports the error.
  if (result.error != 0 || (state.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return events;
  return state.revents;
}

bool is_readable(int descriptor) noexcept { return ready_now(descriptor, POLLIN | POLLRDHUP) != 0; }
bool is_writable(int descriptor) noexcept { return ready_now(descriptor, POLLOUT) != 0; }

[[gnu::noinline]] CallResult set_non_blocking(int descriptor) noexcept {
  if (simulated_kernel(descriptor) != nullptr) [[unlikely]]
    return {};
  const CallResult flags = result_of([=] { return ::fcntl(descriptor, F_GETFL); });
  if (flags.error != 0 || (flags.value & O_NONBLOCK) != 0) return flags;
  return result_of(
      [&] { return ::fcntl(descriptor, F_SETFL, static_cast<int>(flags.value) | O_NONBLOCK); });
}

[[gnu::noinline]] void close_descriptor(int descriptor) noexcept {
  if (Kernel* kernel = simulated_kernel(descriptor)) [[unlikely]]
    return kernel->close(descriptor);
  // There is no retry on EINTR: Linux has released the number, and another file may use it.
  (void)::close(descriptor);
}

}  // namespace weft::io
