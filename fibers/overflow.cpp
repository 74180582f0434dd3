#include "fibers/overflow.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <weft/detail/fork.hpp>

#include "base/pin.hpp"
#include "fibers/calls/call_walk.hpp"
#include "fibers/fiber.hpp"
#include "fibers/signal_text.hpp"

namespace weft::fibers {

using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

constexpr std::size_t kSignalStackBytes = std::size_t{64} << 10;
constexpr std::size_t kMostCalls = 20;
// By default, Linux allows a process 65 530 mappings (vm.max_map_count). A crash reporter needs
// some of them.
constexpr std::size_t kMostMappingsForCore = 48'000;

// Order
//   [spaces]  watch stores (release) -> the handler loads (acquire): the space is constructed.
//   [image]   a handler has finished with the image (release) -> the next handler takes it
//             (acquire).
std::array<detail::Atomic<const StackSpace*>, 64> watched_spaces;
constinit detail::ThreadMutex install_mutex;
const detail::HeldOverForks<install_mutex> hold_install_over_forks;
constinit bool is_installed WEFT_GUARDED_BY(install_mutex) = false;
struct sigaction previous_segv;
struct sigaction previous_bus;
// The process has one image, because a handler's stack has no room for an image. Its pages stay
// untouched until an overflow.
ThreadImage overflow_image;
detail::Atomic<bool> image_in_use{false};

// Describes the guard that a fault has hit.
struct Overflow {
  const Stack* stack = nullptr;  // The overflowed stack; null: no guard was hit.
  const char* top = nullptr;     // The upper end of its memory.
  std::size_t size = 0;
};

Overflow find_overflow(const void* address) noexcept {
  for (const auto& watched : watched_spaces) {
    const StackSpace* space = watched.load(acquire);  // [spaces]
    if (space == nullptr) continue;
    Overflow overflow;
    overflow.stack = space->find_overflowed(address, overflow.size);
    if (overflow.stack == nullptr) continue;
    overflow.top = space->find_top(overflow.stack);
    // If a child runs inlined, selects the header of the innermost inlined child.
    while (const Fiber* fiber = overflow.stack->fiber) {
      const Stack* own = fiber->stack.load(relaxed);
      if (own == nullptr || own == overflow.stack) break;
      overflow.stack = own;
    }
    return overflow;
  }
  return {};
}

// Returns whether kill(), raise() or a similar call sent the signal, whose address is then
// meaningless.
bool was_sent(const siginfo_t& info) noexcept { return info.si_code <= 0; }

void forward(const struct sigaction& previous, int number, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  } else if (!was_sent(*info)) {
    // A return repeats the faulting instruction, now with the default outcome.
    make_core_small(info->si_addr);
    signal(number, SIG_DFL);
  } else if (previous.sa_handler == SIG_DFL) {
    // A return would repeat no instruction, so the signal is sent again. The signal is blocked
    // until the handler returns; then it ends the process.
    make_core_small(info->si_addr);
    signal(number, SIG_DFL);
    (void)raise(number);
  }
}

// Writes where the fiber was spawned, and the mangled name of its type, because demangling would
// need memory.
void write_origin(const Fiber& fiber) noexcept {
  const std::type_info* const type = fiber.task.type_hint();
  const auto* site = static_cast<const char*>(fiber.site_hint());
  if (type == nullptr && site == nullptr) return;
  SignalText line;
  line << " ";
  if (type != nullptr) line << " runs _ZTS" << type->name();
  if (site != nullptr) {
    line << (type != nullptr ? "; spawned at " : " spawned at ");
    line.add_place(site - 1);  // The call precedes its return address.
  }
  line.write_to_stderr();
}

void write_calls(const Overflow& overflow, const void* context) noexcept {
  // The stack is not walked under a sanitizer.
  if (kSanitized || overflow.top == nullptr) return;
  // Relaxed on failure: another thread's stack has also overflowed, and that thread is writing its
  // calls.
  bool expected = false;
  if (!image_in_use.compare_exchange_strong(expected, true, acquire, relaxed)) return;  // [image]
  overflow_image.registers.read(context);
  overflow_image.copy_stack(overflow.top, overflow.stack->lowest);
  const Backtrace trace = calls_in(overflow_image);
  for (std::size_t i = 0; i < trace.count && i < kMostCalls; ++i) {
    SignalText line;
    line << "    at ";
    line.add_place(static_cast<const char*>(trace.frames[i]) - 1).write_to_stderr();
  }
  image_in_use.store(false, release);  // [image]
}

// Writes the sentence first, because a fault in the next steps would end the process at once.
void report(const Overflow& overflow, const void* context) noexcept {
  const Stack& stack = *overflow.stack;
  SignalText line;
  line << "weft: fiber " << stack.fiber_id.load(relaxed) << " '"
       << stack.name.printable_copy().data() << "' overflowed its " << (overflow.size >> 10)
       << " KiB stack; give it more with SpawnOptions::stack_size";
  line.write_to_stderr();
  if (stack.fiber != nullptr) write_origin(*stack.fiber);
  write_calls(overflow, context);
}

void on_fault(int number, siginfo_t* info, void* context);

// An overflow cannot be repaired. If the previous handler has not acted on the signal, the
// instruction is repeated with the default outcome.
void end_by_default(int number, const siginfo_t& info) noexcept {
  struct sigaction current {};
  if (sigaction(number, nullptr, &current) != 0) return;
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &on_fault) {
    make_core_small(info.si_addr);
    signal(number, SIG_DFL);
  }
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const Overflow overflow = was_sent(*info) ? Overflow() : find_overflow(info->si_addr);
  if (overflow.stack != nullptr) report(overflow, context);
  errno = saved_errno;
  forward(number == SIGSEGV ? previous_segv : previous_bus, number, info, context);
  if (overflow.stack != nullptr) end_by_default(number, *info);
  errno = saved_errno;
}

}  // namespace

void install_overflow_report() {
  const detail::Guard lock(install_mutex);
  if (is_installed) return;
  base::pin_this_module();
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGSEGV, &action, &previous_segv) != 0 ||
      sigaction(SIGBUS, &action, &previous_bus) != 0) {
    throw std::system_error(
        errno, std::generic_category(),
        "weft: RuntimeOptions::report_overflow cannot handle SIGSEGV and SIGBUS");
  }
  is_installed = true;
}

void make_core_small(const void* kept) noexcept {
  std::size_t mappings = kMostMappingsForCore;
  for (const auto& watched : watched_spaces) {
    const StackSpace* space = watched.load(acquire);  // [spaces]
    if (space != nullptr) mappings -= std::min(2 * space->protected_hint(), mappings);
  }
  for (const auto& watched : watched_spaces) {
    const StackSpace* space = watched.load(acquire);  // [spaces]
    if (space == nullptr) continue;
    mappings = space->leave_unused_parts_out_of_core(kept, mappings);
    if (mappings == 0) return;
  }
}

void watch_for_overflow(const StackSpace& space) noexcept {
  for (auto& watched : watched_spaces) {
    const StackSpace* expected = nullptr;
    // Relaxed on failure: another space has the entry.
    if (watched.compare_exchange_strong(expected, &space, release, relaxed)) return;  // [spaces]
  }
}

void unwatch_for_overflow(const StackSpace& space) noexcept {
  for (auto& watched : watched_spaces) {
    const StackSpace* expected = &space;
    // Relaxed: to remove an entry publishes nothing.
    (void)watched.compare_exchange_strong(expected, nullptr, relaxed, relaxed);
  }
}

SignalStack::SignalStack() noexcept
    : memory_(mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0)) {
  if (memory_ == MAP_FAILED) return;
  const stack_t alternate{memory_, 0, kSignalStackBytes};
  if (sigaltstack(&alternate, nullptr) == 0) return;
  munmap(memory_, kSignalStackBytes);
  memory_ = MAP_FAILED;
}

SignalStack::~SignalStack() {
  if (memory_ == MAP_FAILED) return;
  stack_t disabled{};
  disabled.ss_flags = SS_DISABLE;
  // The call cannot fail with these arguments. If it failed, the memory would still be in use.
  if (sigaltstack(&disabled, nullptr) == 0) munmap(memory_, kSignalStackBytes);
}

}  // namespace weft::fibers
