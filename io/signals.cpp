#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <weft/detail/atomic.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/thread_mutex.hpp>
#include <weft/io.hpp>

#include "base/sanitizers.hpp"
#include "base/signal_handlers.hpp"
#include "io/attempt.hpp"

namespace weft::io {

using detail::acq_rel;
using detail::relaxed;
using detail::release;
using detail::seq_cst;

namespace {

constexpr int kSignals = 64;

// The thread sanitizer delays a handler until its thread makes another intercepted call, or
// accesses an atomic. A thread that sleeps in futex() would continue to sleep, and the handler
// would never run. Without SA_RESTART the sleep ends, and begins again after the handler.
#ifdef WEFT_TSAN
constexpr int kRestart = 0;
#else
constexpr int kRestart = SA_RESTART;
#endif

// The state of each signal, as a handler sees it.
// Order
//   [note]     the handler sets its bit in came (release) -> wait takes the bits (acq_rel): what
//              the thread did before the signal is visible.
//   [handler]  a handler counts itself in running, then loads wake (both seq_cst), against:
//              restore clears wake, then loads running (both seq_cst): the thread that destroys the
//              descriptor sees the handler, or the handler sees no descriptor.
struct Slots {
  std::array<detail::Atomic<int>, kSignals + 1> wake;  // A descriptor plus 1; 0: none.
  detail::Atomic<std::uint64_t> came{0};               // Bit n - 1: signal n.
  detail::Atomic<std::uint32_t> running{0};
  detail::ThreadMutex lock;
  std::array<struct sigaction, kSignals + 1> before WEFT_GUARDED_BY(lock);
};
Slots slots;

// It runs on any thread, at any place, and makes only calls that a handler may make.
void note_signal(int number) noexcept {
  const int error = errno;
  slots.running.fetch_add(1, seq_cst);                                          // [handler]
  slots.came.fetch_or(std::uint64_t{1} << (number - 1), release);               // [note]
  const int wake = slots.wake[static_cast<std::size_t>(number)].load(seq_cst);  // [handler]
  if (wake > 0) {
    const std::uint64_t one = 1;
    (void)!::write(wake - 1, &one, sizeof one);
  }
  slots.running.fetch_sub(1, seq_cst);  // [handler]
  errno = error;
}

[[gnu::noinline]] CallResult open_event() noexcept {
  return result_of([] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
}

[[gnu::noinline]] CallResult empty_event(int descriptor) noexcept {
  std::uint64_t count = 0;
  return result_of([&] { return ::read(descriptor, &count, sizeof count); });
}

[[gnu::noinline]] std::error_code install(int number, int wake) noexcept WEFT_REQUIRES(slots.lock) {
  const auto slot = static_cast<std::size_t>(number);
  // Relaxed, here and below: the lock is held, and no signal has come for this set yet.
  if (slots.wake[slot].load(relaxed) != 0) return Errc::signal_in_use;
  struct sigaction action {};
  action.sa_handler = &note_signal;
  // Runs on the thread's signal stack: the interrupted fiber's stack may be nearly used up.
  action.sa_flags = kRestart | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  base::add_own_signal_handler(reinterpret_cast<const void*>(&note_signal));
  (void)slots.came.fetch_and(~(std::uint64_t{1} << (number - 1)), relaxed);
  slots.wake[slot].store(wake + 1, seq_cst);  // [handler]
  struct sigaction* const before = &slots.before[slot];
  const CallResult result = result_of([&] { return ::sigaction(number, &action, before); });
  if (result.error == 0) return {};
  slots.wake[slot].store(0, seq_cst);  // [handler]
  return result.code();
}

}  // namespace

Result<SignalSet> SignalSet::watch(std::initializer_list<int> signals) {
  for (const int number : signals) {
    if (number < 1 || number > kSignals) {
      return {.error = std::make_error_code(std::errc::invalid_argument)};
    }
  }
  const CallResult opened = open_event();
  if (opened.error != 0) return {.error = opened.code()};
  const int wake = static_cast<int>(opened.value);
  Result<SignalSet> result;
  auto [watch, error] = Watch::adopt(wake);
  if (error) {
    close_descriptor(wake);
    return {.error = error};
  }
  result.value.wake_ = std::move(watch);
  for (const int number : signals) {
    const detail::Guard guard(slots.lock);
    result.error = install(number, wake);
    if (result.error) break;
    result.value.mask_ |= std::uint64_t{1} << (number - 1);
  }
  if (result.error) return {.error = result.error};
  return result;
}

SignalSet& SignalSet::operator=(SignalSet&& other) noexcept {
  if (this != &other) {
    restore();
    wake_ = std::move(other.wake_);
    mask_ = std::exchange(other.mask_, 0);
  }
  return *this;
}

SignalSet::SignalSet(SignalSet&& other) noexcept
    : wake_(std::move(other.wake_)), mask_(std::exchange(other.mask_, 0)) {}

SignalSet::~SignalSet() { restore(); }

void SignalSet::restore() noexcept {
  if (mask_ == 0) return;
  {
    const detail::Guard guard(slots.lock);
    for (std::uint64_t left = mask_; left != 0; left &= left - 1) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(left)) + 1;
      (void)::sigaction(static_cast<int>(slot), &slots.before[slot], nullptr);
      slots.wake[slot].store(0, seq_cst);  // [handler]
    }
  }
  while (slots.running.load(seq_cst) != 0) detail::yield();  // [handler]
  mask_ = 0;
}

Result<int> SignalSet::wait(const Until& until) {
  for (;;) {
    // The eventfd is read first: a signal that comes after the load leaves it readable.
    (void)empty_event(wake_.native_handle());
    // Relaxed: the exchange below acquires what was recorded.
    const std::uint64_t came = slots.came.load(relaxed) & mask_;
    if (came != 0) {
      const std::uint64_t first = came & (~came + 1);
      (void)slots.came.fetch_and(~first, acq_rel);  // [note]
      return {.value = std::countr_zero(first) + 1};
    }
    const auto [ready, error] = wake_.wait(Ready::read, until);
    if (error) return {.error = error};
  }
}

Result<int> wait_signal(std::initializer_list<int> signals, const Until& until) {
  auto [set, error] = SignalSet::watch(signals);
  if (error) return {.error = error};
  return set.wait(until);
}

}  // namespace weft::io
