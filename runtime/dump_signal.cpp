#include "runtime/dump_signal.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/detail/fork.hpp>
#include <weft/detail/never_destroyed.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/refusal.hpp"
#include "base/signal_handlers.hpp"
#include "base/thread.hpp"
#include "runtime/dump.hpp"
#include "runtime/signal_profile.hpp"
#include "scheduler/sleep/parked_threads.hpp"

namespace weft::runtime {

namespace {

using detail::full_fence;
using detail::relaxed;

// The eventfd adds up the numbers written to it. The number is 1 for each dump, larger for each
// second of a profile, and much larger for the end.
constexpr std::uint64_t kDump = 1;
constexpr std::uint64_t kSecond = std::uint64_t{1} << 16;
constexpr int kMostSeconds = 60;
constexpr std::uint64_t kEnd = std::uint64_t{1} << 32;

// State that the handler uses.
// Order
//   [handler]  the handler counts itself; full_fence; it reads the descriptor, against: the
//              descriptor is taken away; full_fence; the handlers are counted. Either the handler
//              finds no descriptor, or the thread that closes the descriptor first waits for the
//              handler.
// Relaxed otherwise: the handler reads only these two variables.
detail::Atomic<int> handler_descriptor{-1};
detail::Atomic<std::uint32_t> handlers_running{0};

// Holds the state that all users share.
struct Shared {
  detail::ThreadMutex mutex;
  unsigned users WEFT_GUARDED_BY(mutex) = 0;
  int number WEFT_GUARDED_BY(mutex) = 0;
  int descriptor WEFT_GUARDED_BY(mutex) = -1;
  struct sigaction previous WEFT_GUARDED_BY(mutex) {};
  std::optional<std::thread> writer WEFT_GUARDED_BY(mutex);
};

// A static runtime may end after other static objects.
constinit detail::NeverDestroyed<Shared> all_users;
Shared& shared() noexcept { return all_users.get(); }

// Not analyzed, all three functions: one function releases the lock that another function takes.
void lock_before_fork() WEFT_NOT_ANALYZED { shared().mutex.lock(); }
void unlock_after_fork() WEFT_NOT_ANALYZED { shared().mutex.unlock(); }

// The child has no writer thread. The handler stays installed, and finds no descriptor.
void forget_after_fork() WEFT_NOT_ANALYZED {
  Shared& state = shared();
  handler_descriptor.store(-1, relaxed);
  handlers_running.store(0, relaxed);
  if (state.users > 0) (void)::close(state.descriptor);
  state.users = 0;
  new (&state.writer) std::optional<std::thread>;  // The parent's thread cannot be joined.
  state.mutex.unlock();
}

const detail::ForkHandlers dump_fork_handlers(detail::ForkHandlers::Locks::outer, &lock_before_fork,
                                              &unlock_after_fork, &forget_after_fork);

void write_to(int descriptor, std::uint64_t value) noexcept {
  // Except for interruptions, it fails only if the counter is full, and then dumps are pending
  // anyway.
  while (::write(descriptor, &value, sizeof value) < 0 && errno == EINTR) {
  }
}

// A value that was queued with the signal, by `kill --queue`, is the length of a profile in
// seconds.
std::uint64_t request_of(const siginfo_t& info) noexcept {
  if (info.si_code != SI_QUEUE || info.si_value.sival_int <= 0) return kDump;
  return static_cast<std::uint64_t>(std::min(info.si_value.sival_int, kMostSeconds)) * kSecond;
}

void on_signal(int /*number*/, siginfo_t* info, void* /*context*/) {
  const int saved_errno = errno;
  handlers_running.fetch_add(1, relaxed);
  full_fence();  // [handler]
  const int descriptor = handler_descriptor.load(relaxed);
  if (descriptor >= 0) write_to(descriptor, request_of(*info));
  handlers_running.fetch_sub(1, detail::release);  // [handler]
  errno = saved_errno;
}

void write_dumps(int descriptor) noexcept {
  base::set_thread_name("weft-dump");
  SignalProfile profile;
  for (;;) {
    std::uint64_t value = 0;
    const ssize_t length = ::read(descriptor, &value, sizeof value);
    if (length != sizeof value && errno != EINTR) return;
    if (value % kSecond != 0) write_all_to_stderr();
    if (const std::uint64_t seconds = value % kEnd / kSecond; seconds != 0 && value < kEnd) {
      profile.begin(std::chrono::seconds(std::min<std::uint64_t>(seconds, kMostSeconds)));
    }
    if (value >= kEnd) return;
  }
}

// Starts a thread that blocks all signals, which are for the program's own threads.
std::thread start_writer(int descriptor) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread writer(&write_dumps, descriptor);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return writer;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

void stop_writer(Shared& state) noexcept WEFT_REQUIRES(state.mutex) {
  // From here on the writer counts as a thread that might wake fibers.
  scheduler::ParkedThreads::end();
  write_to(state.descriptor, kEnd);
  state.writer->join();
  state.writer.reset();
}

void forget_descriptor(Shared& state) noexcept WEFT_REQUIRES(state.mutex) {
  handler_descriptor.store(-1, relaxed);
  full_fence();                                                                 // [handler]
  while (handlers_running.load(detail::acquire) != 0) base::yield_processor();  // [handler]
  ::close(state.descriptor);
}

[[noreturn]] void refuse(int number, const std::string& why) {
  throw std::invalid_argument("weft: RuntimeOptions::dump_signal = " + std::to_string(number) +
                              why);
}

// Returns whether the program may continue after the signal. A signal that reports a fault would be
// raised again at once, forever.
bool can_be_handled(int number) noexcept {
  switch (number) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT:
    case SIGKILL:
    case SIGSTOP:
      return false;
    default:
      // The C library uses the numbers in between itself.
      return (number > 0 && number < 32) || (number >= SIGRTMIN && number <= SIGRTMAX);
  }
}

void install(Shared& state, int number) WEFT_REQUIRES(state.mutex) {
  if (!can_be_handled(number)) {
    refuse(number,
           ", which reports a fault or cannot be handled; choose SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 "
           "or a real-time signal");
  }
  state.descriptor = ::eventfd(0, EFD_CLOEXEC);
  if (state.descriptor < 0) {
    throw base::refusal({errno, std::generic_category()},
                        "RuntimeOptions::dump_signal cannot create an eventfd");
  }
  try {
    state.writer = start_writer(state.descriptor);
  } catch (const std::system_error& refused) {
    ::close(state.descriptor);
    throw base::refusal(refused.code(),
                        "RuntimeOptions::dump_signal cannot start its writer thread");
  } catch (...) {
    ::close(state.descriptor);
    throw;
  }
  // This thread never wakes a fiber, so it must not prevent the search for deadlocks.
  scheduler::ParkedThreads::begin();
  handler_descriptor.store(state.descriptor, relaxed);
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  // Runs on each worker's signal stack: a fiber's own stack may be nearly used up.
  action.sa_flags = SA_RESTART | SA_ONSTACK | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  base::add_own_signal_handler(reinterpret_cast<const void*>(&on_signal));
  if (sigaction(number, &action, &state.previous) != 0) {
    const int error = errno;
    stop_writer(state);
    forget_descriptor(state);
    throw std::system_error(
        error, std::generic_category(),
        std::string("weft: RuntimeOptions::dump_signal = ").append(std::to_string(number)));
  }
  state.number = number;
}

void uninstall(Shared& state) noexcept WEFT_REQUIRES(state.mutex) {
  struct sigaction current {};
  if (sigaction(state.number, nullptr, &current) == 0 && current.sa_sigaction == &on_signal) {
    // This call cannot fail, since the first call succeeded.
    (void)sigaction(state.number, &state.previous, nullptr);
  }
  stop_writer(state);
  forget_descriptor(state);
}

}  // namespace

int dump_signal_or(int otherwise) {
  const char* text = std::getenv("WEFT_DUMP_SIGNAL");
  if (text == nullptr || *text == '\0') return otherwise;
  std::string_view name(text);
  if (name.starts_with("SIG")) name.remove_prefix(3);
  constexpr std::array<std::pair<std::string_view, int>, 4> kNames{
      {{"HUP", SIGHUP}, {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}}};
  const auto* found = std::ranges::find(kNames, name, &std::pair<std::string_view, int>::first);
  if (found != kNames.end()) return found->second;
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) return number;
  throw std::invalid_argument("weft: the environment's WEFT_DUMP_SIGNAL = " + std::string(text) +
                              "; must be HUP, QUIT, USR1, USR2 or a number");
}

DumpSignal::DumpSignal(int number) {
  Shared& state = shared();
  const detail::Guard lock(state.mutex);
  if (state.users == 0) {
    install(state, number);
  } else if (state.number != number) {
    refuse(number, ", but another runtime has chosen " + std::to_string(state.number));
  }
  ++state.users;
}

DumpSignal::~DumpSignal() {
  Shared& state = shared();
  const detail::Guard lock(state.mutex);
  if (--state.users == 0) uninstall(state);
}

}  // namespace weft::runtime
