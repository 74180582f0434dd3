#include "fibers/calls/thread_calls.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <weft/detail/atomic.hpp>

#include "base/parker.hpp"
#include "base/signal_handlers.hpp"
#include "base/thread_timer.hpp"
#include "fibers/calls/call_walk.hpp"

namespace weft::fibers {

using detail::acq_rel;
using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

// The system ignores this signal unless the program handles it. A signal that arrives too late, or
// after the program has replaced the handler, is harmless.
constexpr int kSignal = SIGURG;
constexpr auto kPatience = std::chrono::milliseconds(20);

// A request to a handler is a number, with its phase in the two lowest bits. A handler that runs
// after its request was abandoned finds another number.
constexpr std::uint32_t kNobody = 0;
constexpr std::uint32_t kAsked = 1;
constexpr std::uint32_t kTaking = 2;
constexpr std::uint32_t kTaken = 3;
constexpr std::uint32_t phase_of(std::uint32_t request) noexcept { return request & 3; }

// The process has one such object; its pages are not touched before the first request.
// Order
//   [asked]  the requester stores the request (release) -> the handler takes it (acquire): `space`.
//   [taken]  the handler completes it (release) -> the requester loads it (acquire): the image.
//   [turn]   the requester leaves (release) -> the next requester enters (acquire).
struct Shared {
  detail::Atomic<std::uint32_t> request{kNobody};
  const StackSpace* space = nullptr;
  ThreadImage image;
  detail::Atomic<int> user{0};  // The process of the requester; a fork resets it.
  std::uint32_t number = 0;
};
Shared shared;

// Returns false if the thread is not on a stack of `space`.
bool copy_stack(const StackSpace& space, ThreadImage& image) noexcept {
  const auto* pointer =
      reinterpret_cast<const char*>(image.registers.values[kStackRegister]);  // NOLINT
  const char* top = space.find_top(pointer);
  if (top == nullptr) return false;
  image.copy_stack(top);
  return true;
}

void on_signal(int /*number*/, siginfo_t* info, void* context) {
  if (info->si_code != SI_TIMER) return;
  const int saved_errno = errno;
  auto asked = static_cast<std::uint32_t>(info->si_value.sival_int);
  // Relaxed on failure: the request belongs to another requester, or has been abandoned.
  if (phase_of(asked) == kAsked &&
      shared.request.compare_exchange_strong(asked, asked + (kTaking - kAsked), acq_rel,
                                             relaxed)) {  // [asked]
    shared.image.registers.read(context);
    if (!copy_stack(*shared.space, shared.image)) shared.image.count = 0;
    shared.request.store(asked + (kTaken - kAsked), release);  // [taken]
    base::futex_wake_all(shared.request);
  }
  errno = saved_errno;
}

// Requests the call stack of a running thread by a signal. Returns false if it cannot be found.
bool ask_by_signal(const StackSpace& space, int thread) noexcept {
  if (!base::install_own_signal_handler(kSignal, &on_signal)) return false;
  shared.space = &space;
  shared.number += 4;
  std::uint32_t asked = shared.number | kAsked;
  shared.request.store(asked, release);  // [asked]
  const base::ThreadTimer timer(
      {.thread = thread, .signal = kSignal, .value = static_cast<int>(asked)});
  bool given_up = !timer.is_set();
  const Deadline limit = Deadline::after(kPatience);
  for (;;) {
    std::uint32_t seen = shared.request.load(acquire);  // [taken]
    if (phase_of(seen) == kTaken) return shared.image.count != 0;
    if (phase_of(seen) == kAsked && (given_up || limit.passed())) {
      // Relaxed: nothing has been written. If the handler has begun, the caller waits for it.
      if (shared.request.compare_exchange_strong(asked, kNobody, relaxed, relaxed)) return false;
      given_up = false;
      continue;
    }
    base::futex_wait(shared.request, seen, phase_of(seen) == kAsked ? limit : Deadline::never());
  }
}

enum class Whereabouts : std::uint8_t { in_call, running, unknown };

// Returns a waiting thread's stack pointer and the address of its next instruction, as the kernel
// reports them.
Whereabouts find_in_kernel(int thread, Registers& registers) noexcept {
  char text[256];
  (void)std::snprintf(text, sizeof text, "/proc/self/task/%d/syscall", thread);
  const int descriptor = ::open(text, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Whereabouts::unknown;
  const ssize_t length = ::read(descriptor, text, sizeof text - 1);
  (void)::close(descriptor);
  if (length <= 0) return Whereabouts::unknown;
  text[length] = '\0';
  if (std::strncmp(text, "running", 7) == 0) return Whereabouts::running;
  // Reads the last two words. The number and the arguments of a system call may precede these.
  const char* program_counter = std::strrchr(text, ' ');
  if (program_counter == nullptr || program_counter == text) return Whereabouts::unknown;
  const char* stack_pointer = program_counter - 1;
  while (stack_pointer > text && *stack_pointer != ' ') --stack_pointer;
  registers = {};
  registers.set(kStackRegister, std::strtoull(stack_pointer, nullptr, 16));
  registers.program_counter = std::strtoull(program_counter, nullptr, 16);
  return Whereabouts::in_call;
}

Backtrace find_calls(const StackSpace& space, int thread) noexcept {
  switch (find_in_kernel(thread, shared.image.registers)) {
    case Whereabouts::in_call:
      return copy_stack(space, shared.image) ? calls_in(shared.image) : Backtrace();
    case Whereabouts::running:
      return ask_by_signal(space, thread) ? calls_in(shared.image) : Backtrace();
    case Whereabouts::unknown:
      break;
  }
  return {};
}

}  // namespace

Backtrace calls_of_thread(const StackSpace& space, int thread) noexcept {
  if (kSanitized || thread == 0) return {};
  const int process = getpid();
  int user = shared.user.load(relaxed);
  if (user == process) return {};
  // Relaxed on failure: another thread's request is in progress.
  if (!shared.user.compare_exchange_strong(user, process, acquire, relaxed)) return {};  // [turn]
  Backtrace trace = find_calls(space, thread);
  shared.user.store(0, release);  // [turn]
  return trace;
}

}  // namespace weft::fibers
