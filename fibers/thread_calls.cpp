#include "fibers/thread_calls.hpp"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <weft/detail/atomic.hpp>

#include "base/parker.hpp"
#include "base/pin.hpp"
#include "base/signal_handlers.hpp"
#include "fibers/call_walk.hpp"

namespace weft::fibers {

using detail::acq_rel;
using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

// A signal that is ignored unless somebody handles it: one that comes too late, or after the
// program has replaced the handler, does no harm.
constexpr int kSignal = SIGURG;
constexpr auto kPatience = std::chrono::milliseconds(20);

// The request to a handler: a number, and in the two lowest bits how far it is. A handler that
// comes after its request has been given up finds another number.
constexpr std::uint32_t kNobody = 0;
constexpr std::uint32_t kAsked = 1;
constexpr std::uint32_t kTaking = 2;
constexpr std::uint32_t kTaken = 3;
constexpr std::uint32_t phase_of(std::uint32_t request) noexcept { return request & 3; }

// One for the process; the pages are not touched before the first request.
// Order
//   [asked]  who asks stores the request (release) -> the handler takes it on (acquire): `space`.
//   [taken]  the handler ends it (release) -> who asks loads it (acquire): the image.
//   [turn]   who has asked leaves (release) -> the next one enters (acquire).
struct Shared {
  detail::Atomic<std::uint32_t> request{kNobody};
  const StackSpace* space = nullptr;
  ThreadImage image;
  detail::Atomic<int> user{0};  // The process in which somebody asks: forgotten by a fork.
  std::uint32_t number = 0;
};
Shared shared;

// Returns false when the thread is not on a stack of the space.
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
  // Relaxed on failure: somebody else's, or given up.
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

// False where the program handles the signal itself.
bool install_handler() noexcept {
  struct sigaction current {};
  if (sigaction(kSignal, nullptr, &current) != 0) return false;
  if ((current.sa_flags & SA_SIGINFO) != 0) return current.sa_sigaction == &on_signal;
  if (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN) return false;
  base::pin_this_module();  // The handler stays.
  base::add_own_signal_handler(reinterpret_cast<const void*>(&on_signal));
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  return sigaction(kSignal, &action, nullptr) == 0;
}

// A timer of a thread's own processor time: its signal comes while the thread runs, at the next
// tick of the kernel's clock. A signal that is sent at once might meet a thread that has begun to
// wait meanwhile, and end its poll() or epoll_wait(), which SA_RESTART does not begin again.
class SignalOnceItRuns {
 public:
  SignalOnceItRuns(int thread, std::uint32_t request) noexcept {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kSignal;
    event.sigev_value.sival_int = static_cast<int>(request);
    event._sigev_un._tid = thread;
    const itimerspec soon{{}, {.tv_sec = 0, .tv_nsec = 1}};
    exists_ = timer_create(clock_of(thread), &event, &timer_) == 0;
    is_set_ = exists_ && timer_settime(timer_, 0, &soon, nullptr) == 0;
  }
  SignalOnceItRuns(const SignalOnceItRuns&) = delete;
  SignalOnceItRuns& operator=(const SignalOnceItRuns&) = delete;
  ~SignalOnceItRuns() {
    if (exists_) timer_delete(timer_);
  }
  [[nodiscard]] bool is_set() const noexcept { return is_set_; }

 private:
  // The kernel's numbers for such clocks: the thread's, with its bits inverted, above three that
  // say which clock of which kind it is.
  static clockid_t clock_of(int thread) noexcept {
    constexpr unsigned kOfThread = 4;
    constexpr unsigned kScheduled = 2;
    return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | kOfThread | kScheduled);
  }

  timer_t timer_{};
  bool exists_ = false;
  bool is_set_ = false;
};

// Of a thread that runs.
bool ask_by_signal(const StackSpace& space, int thread) noexcept {
  if (!install_handler()) return false;
  shared.space = &space;
  shared.number += 4;
  std::uint32_t asked = shared.number | kAsked;
  shared.request.store(asked, release);  // [asked]
  const SignalOnceItRuns signal(thread, asked);
  bool given_up = !signal.is_set();
  const Deadline limit = Deadline::after(kPatience);
  for (;;) {
    std::uint32_t seen = shared.request.load(acquire);  // [taken]
    if (phase_of(seen) == kTaken) return shared.image.count != 0;
    if (phase_of(seen) == kAsked && (given_up || limit.passed())) {
      // Relaxed: nothing has been written. If the handler has begun, it is waited for.
      if (shared.request.compare_exchange_strong(asked, kNobody, relaxed, relaxed)) return false;
      given_up = false;
      continue;
    }
    base::futex_wait(shared.request, seen, phase_of(seen) == kAsked ? limit : Deadline::never());
  }
}

enum class Whereabouts : std::uint8_t { in_call, running, unknown };

// The kernel's answer about a thread that waits: where its stack and its next instruction are.
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
  // The last two words, whether or not a call and its arguments are before them.
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
  // Relaxed on failure: somebody else asks.
  if (!shared.user.compare_exchange_strong(user, process, acquire, relaxed)) return {};  // [turn]
  Backtrace trace = find_calls(space, thread);
  shared.user.store(0, release);  // [turn]
  return trace;
}

}  // namespace weft::fibers
