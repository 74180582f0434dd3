#include "libs/posix/system_calls.hpp"

#include "libs/posix/fiber_state.hpp"
#include "libs/posix/hooks.hpp"
#include "libs/posix/samples.hpp"

#if defined(__x86_64__) && defined(__LP64__) && defined(__linux__) && \
    !defined(WEFT_POSIX_ADDRESS_SANITIZER)
#include <sys/prctl.h>
#include <sys/syscall.h>
#if defined(PR_SET_SYSCALL_USER_DISPATCH) && defined(SYS_clone3)
#define WEFT_POSIX_SEES_SYSTEM_CALLS
#endif
#endif

#include <unistd.h>

#include <cstdlib>
#include <string_view>
#ifdef WEFT_POSIX_SEES_SYSTEM_CALLS
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <weft/deadline.hpp>
#endif

namespace weft::posix {

constinit detail::Atomic<bool> system_calls::are_seen{false};

namespace {

bool is_wanted() noexcept {
  const char* value = std::getenv("WEFT_POSIX_SYSTEM_CALLS");
  return value != nullptr && std::string_view(value) == "1";
}

// Runs outside of scopes, in which write() would end in this library.
void refuse_mode(std::string_view why) noexcept {
  constexpr std::string_view kBegin = "weft-posix: WEFT_POSIX_SYSTEM_CALLS has no effect: ";
  (void)!::write(STDERR_FILENO, kBegin.data(), kBegin.size());
  (void)!::write(STDERR_FILENO, why.data(), why.size());
}

}  // namespace

#ifdef WEFT_POSIX_SEES_SYSTEM_CALLS

// The kernel does not intercept system calls that these two functions make. The first function
// returns to the address at the top of the stack. It skips the 128 bytes below the stack pointer
// that a function may use. The second function ends a handler; unwinders recognize it by its bytes.
asm(R"(
  .text
  .balign 16
  .globl weft_posix_calls_begin, weft_posix_call, weft_posix_sigreturn, weft_posix_calls_end
  .hidden weft_posix_calls_begin, weft_posix_call, weft_posix_sigreturn, weft_posix_calls_end
weft_posix_calls_begin:
  nop
weft_posix_call:
  syscall
  ret $128
  nop
weft_posix_sigreturn:
  movq $15, %rax
  syscall
  nop
weft_posix_calls_end:
)");
extern "C" {
extern const char weft_posix_calls_begin[];
extern const char weft_posix_call[];
extern const char weft_posix_sigreturn[];
extern const char weft_posix_calls_end[];
}

namespace {

constexpr std::uint64_t kSignalBit = 1ULL << (SIGSYS - 1);
constexpr long kMaskSize = sizeof kSignalBit;  // The size that the kernel expects.

__thread char selector __attribute__((tls_model("initial-exec"))) = SYSCALL_DISPATCH_FILTER_ALLOW;
__thread bool is_prepared __attribute__((tls_model("initial-exec"))) = false;

long call_system(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) noexcept {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// The argument of rt_sigaction(), as the kernel expects it.
struct Action {
  std::uint64_t handler;
  std::uint64_t flags;
  std::uint64_t restorer;
  std::uint64_t mask;
};

// In this mode, the kernel kills a thread that blocks SIGSYS.
long set_action(long signal, const Action* action, Action* former, long size) noexcept {
  Action copy{};
  if (action != nullptr) {
    if (signal == SIGSYS) return -EINVAL;
    copy = *action;
    copy.mask &= ~kSignalBit;
  }
  return call_system(SYS_rt_sigaction, signal,
                     action == nullptr ? 0 : reinterpret_cast<long>(&copy),
                     reinterpret_cast<long>(former), size);
}

// Returns how often the thread has given up its processor in order to wait.
long count_waits() noexcept {
  rusage usage{};
  (void)call_system(SYS_getrusage, RUSAGE_THREAD, reinterpret_cast<long>(&usage));
  return usage.ru_nvcsw;
}

using Frames = std::array<const void*, 12>;
struct Collected {
  Frames frames{};
  std::size_t count = 0;
  // The address of the interrupted code; frames before it belong to the handler.
  std::uintptr_t first = 0;
};

void add_blocked(std::uintptr_t address, std::int64_t took) noexcept {
  Collected collected;
  collected.first = address;
  (void)::_Unwind_Backtrace(
      [](_Unwind_Context* context, void* to) {
        auto& calls = *static_cast<Collected*>(to);
        const auto place = static_cast<std::uintptr_t>(::_Unwind_GetIP(context));
        if (calls.count == 0 && place != calls.first) return _URC_NO_REASON;
        calls.frames[calls.count++] = reinterpret_cast<const void*>(place);
        return calls.count < calls.frames.size() ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &collected);
  add_sample(std::span(collected.frames).first(collected.count), std::chrono::nanoseconds(took));
}

// Makes the call after the handler has returned, and then continues the program. It serves calls
// that act on the stack or do not return.
void redirect(greg_t* registers) noexcept {
  const auto stack = static_cast<std::uintptr_t>(registers[REG_RSP]) - 128 - sizeof(greg_t);
  *reinterpret_cast<greg_t*>(stack) = registers[REG_RIP];
  registers[REG_RSP] = static_cast<greg_t>(stack);
  registers[REG_RIP] = reinterpret_cast<greg_t>(weft_posix_call);
}

// Changes the signal mask that the interrupted code has when the handler returns.
long set_mask(ucontext_t& context, long how, const std::uint64_t* set, std::uint64_t* former,
              long size) noexcept {
  std::uint64_t mask = 0;
  std::memcpy(&mask, &context.uc_sigmask, sizeof mask);
  std::uint64_t next = mask;
  if (size != kMaskSize) return -EINVAL;
  if (set != nullptr) {
    if (how == SIG_BLOCK) {
      next |= *set;
    } else if (how == SIG_UNBLOCK) {
      next &= ~*set;
    } else if (how == SIG_SETMASK) {
      next = *set;
    } else {
      return -EINVAL;
    }
  }
  next &= ~kSignalBit;
  std::memcpy(&context.uc_sigmask, &next, sizeof next);
  if (former != nullptr) *former = mask;
  return 0;
}

// Returns false if the call can be made in the handler.
bool is_special(greg_t* registers) noexcept {
  switch (registers[REG_RAX]) {
    case SYS_rt_sigreturn:
      registers[REG_RIP] = reinterpret_cast<greg_t>(weft_posix_sigreturn);
      return true;
    case SYS_clone3:
      registers[REG_RAX] = -ENOSYS;  // The C library then uses clone().
      return true;
    case SYS_vfork:
      registers[REG_RAX] = SYS_fork;  // The child would overwrite the stack of its parent.
      redirect(registers);
      return true;
    case SYS_clone:
      if (registers[REG_RSI] == 0) {
        registers[REG_RDI] &= ~static_cast<greg_t>(CLONE_VM | CLONE_VFORK);
      } else {
        registers[REG_RSI] -= 128 + static_cast<greg_t>(sizeof(greg_t));
        *reinterpret_cast<greg_t*>(registers[REG_RSI]) = registers[REG_RIP];
      }
      redirect(registers);
      return true;
    case SYS_fork:
    case SYS_execve:
    case SYS_execveat:
    case SYS_exit:
    case SYS_exit_group:
    case SYS_sigaltstack:
      redirect(registers);
      return true;
    default:
      return false;
  }
}

// Makes a call in the handler.
long make_call(ucontext_t& context) noexcept {
  const greg_t* registers = context.uc_mcontext.gregs;
  const long first = registers[REG_RDI];
  const long second = registers[REG_RSI];
  const long third = registers[REG_RDX];
  const long fourth = registers[REG_R10];
  switch (registers[REG_RAX]) {
    case SYS_rt_sigaction:
      return set_action(first, reinterpret_cast<const Action*>(second),
                        reinterpret_cast<Action*>(third), fourth);
    case SYS_rt_sigprocmask:
      return set_mask(context, first, reinterpret_cast<const std::uint64_t*>(second),
                      reinterpret_cast<std::uint64_t*>(third), fourth);
    default:
      return call_system(registers[REG_RAX], first, second, third, fourth, registers[REG_R8],
                         registers[REG_R9]);
  }
}

void make_measured_call(ucontext_t& context) noexcept {
  greg_t* registers = context.uc_mcontext.gregs;
  FiberState* state = find_scope();
  // The library intercepts and counts a call that is not sampled. This function counts other calls,
  // so the monitor need not.
  if (state != nullptr && !state->is_sampled()) state = nullptr;
  if (state != nullptr) state->set_sampled(false);
  const long waits = state == nullptr ? 0 : count_waits();
  const std::int64_t begin = state == nullptr ? 0 : Deadline::now_nanoseconds();
  registers[REG_RAX] = make_call(context);
  if (state == nullptr) return;
  state->set_sampled(true);
  const std::int64_t took = Deadline::now_nanoseconds() - begin;
  if (count_waits() != waits) add_blocked(static_cast<std::uintptr_t>(registers[REG_RIP]), took);
}

// A fiber that parks by a call to weft leaves the thread in the mode. The first system call of the
// next fiber, or of the worker, ends the mode.
void on_system_call(int, siginfo_t*, void* interrupted) noexcept {
  selector = SYSCALL_DISPATCH_FILTER_ALLOW;
  const int error = errno;
  auto& context = *static_cast<ucontext_t*>(interrupted);
  if (!is_special(context.uc_mcontext.gregs)) make_measured_call(context);
  errno = error;
  selector =
      find_scope() != nullptr ? SYSCALL_DISPATCH_FILTER_BLOCK : SYSCALL_DISPATCH_FILTER_ALLOW;
}

bool dispatch(long mode) noexcept {
  return call_system(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode,
                     reinterpret_cast<long>(weft_posix_calls_begin),
                     weft_posix_calls_end - weft_posix_calls_begin,
                     reinterpret_cast<long>(&selector)) == 0;
}

}  // namespace

void begin_system_calls() noexcept {
  // Several threads may open the first Scope at the same time.
  static constinit detail::Atomic<bool> has_begun{false};
  if (!is_wanted() || has_begun.exchange(true, detail::relaxed)) return;
  Action former{};
  (void)set_action(SIGSYS, nullptr, &former, kMaskSize);
  if (former.handler != 0)
    return refuse_mode("the program handles SIGSYS itself; find its calls with strace -f -k\n");
  // SA_RESTORER; the C library has no name for it.
  const Action action{reinterpret_cast<std::uint64_t>(&on_system_call),
                      SA_SIGINFO | SA_NODEFER | 0x04000000,
                      reinterpret_cast<std::uint64_t>(weft_posix_sigreturn), 0};
  if (!dispatch(PR_SYS_DISPATCH_ON)) {
    return refuse_mode(
        "the kernel has no Syscall User Dispatch (Linux 5.11), or a sandbox refuses it; find the "
        "calls with strace -f -k\n");
  }
  (void)call_system(SYS_rt_sigaction, SIGSYS, reinterpret_cast<long>(&action), 0, kMaskSize);
  is_prepared = true;
  system_calls::are_seen.store(true, detail::relaxed);
}

void let_handlers_be_seen() noexcept {
  for (int signal = 1; signal < NSIG; ++signal) {
    Action installed{};
    if (signal != SIGSYS && set_action(signal, nullptr, &installed, kMaskSize) == 0 &&
        (installed.mask & kSignalBit) != 0)
      (void)set_action(signal, &installed, nullptr, kMaskSize);
  }
}

[[gnu::noinline]] void see_system_calls(bool are_seen) noexcept {
  if (are_seen && selector == SYSCALL_DISPATCH_FILTER_BLOCK) return;
  if (are_seen) {
    // The thread may have blocked all signals since the last call.
    const std::uint64_t mask = kSignalBit;
    (void)call_system(SYS_rt_sigprocmask, SIG_UNBLOCK, reinterpret_cast<long>(&mask), 0, kMaskSize);
    if (!is_prepared && !dispatch(PR_SYS_DISPATCH_ON)) return;
    is_prepared = true;
  }
  selector = are_seen ? SYSCALL_DISPATCH_FILTER_BLOCK : SYSCALL_DISPATCH_FILTER_ALLOW;
  asm volatile("" : : : "memory");
}

#else

void begin_system_calls() noexcept {
  if (is_wanted()) {
    refuse_mode(
        "it needs Linux on x86-64 and a build without the address sanitizer; find the calls with "
        "strace -f -k\n");
  }
}
void let_handlers_be_seen() noexcept {}
void see_system_calls(bool) noexcept {}

#endif

}  // namespace weft::posix
