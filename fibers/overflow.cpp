#include "fibers/overflow.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

#include "base/pin.hpp"
#include "fibers/fiber.hpp"

namespace weft::fibers {

using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

constexpr std::size_t kSignalStackBytes = std::size_t{64} << 10;

// Order
//   [spaces]  watch stores (release) -> the handler loads (acquire): the space is constructed.
std::array<detail::Atomic<const StackSpace*>, 64> watched_spaces;
struct sigaction previous_segv;
struct sigaction previous_bus;

// Builds a line without any function that a signal handler may not call.
class Line {
 public:
  Line& operator<<(const char* text) noexcept {
    while (*text != '\0' && length_ < sizeof text_) text_[length_++] = *text++;
    return *this;
  }
  Line& operator<<(std::uint64_t number) noexcept {
    char digits[20];
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0 && length_ < sizeof text_) text_[length_++] = digits[--count];
    return *this;
  }
  void write_to_stderr() const noexcept { (void)!::write(STDERR_FILENO, text_, length_); }

 private:
  char text_[256];
  std::size_t length_ = 0;
};

const Stack* overflowed_stack(const void* address, std::size_t& stack_size) noexcept {
  for (const auto& watched : watched_spaces) {
    const StackSpace* space = watched.load(acquire);  // [spaces]
    if (space == nullptr) continue;
    const Stack* stack = space->find_overflowed(address, stack_size);
    if (stack == nullptr) continue;
    // That of the innermost inlined child, if there is one.
    while (const Fiber* fiber = stack->fiber) {
      const Stack* own = fiber->stack.load(relaxed);
      if (own == nullptr || own == stack) break;
      stack = own;
    }
    return stack;
  }
  return nullptr;
}

// By kill(), raise() and the like, rather than by a fault: its address means nothing then.
bool was_sent(const siginfo_t& info) noexcept { return info.si_code <= 0; }

void forward(const struct sigaction& previous, int number, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  } else if (!was_sent(*info)) {
    // Returning repeats the faulting instruction, now with the default outcome.
    signal(number, SIG_DFL);
  } else if (previous.sa_handler == SIG_DFL) {
    // No instruction is repeated here: the signal must come again by itself. It is blocked until
    // the handler returns, and ends the process then.
    signal(number, SIG_DFL);
    (void)raise(number);
  }
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  std::size_t stack_size = 0;
  const Stack* stack = was_sent(*info) ? nullptr : overflowed_stack(info->si_addr, stack_size);
  if (stack != nullptr) {
    Line line;
    line << "weft: fiber " << stack->fiber_id.load(relaxed) << " '"
         << stack->name.printable_copy().data() << "' overflowed its " << (stack_size >> 10)
         << " KiB stack; give it more with SpawnOptions::stack_size\n";
    line.write_to_stderr();
    signal(number, SIG_DFL);
    errno = saved_errno;
    return;
  }
  forward(number == SIGSEGV ? previous_segv : previous_bus, number, info, context);
  errno = saved_errno;
}

}  // namespace

void install_overflow_report() {
  static const bool installed = [] {
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
    return true;
  }();
  (void)installed;
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
    // Relaxed: nothing is published by forgetting.
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
  // Cannot fail with these arguments; and memory that is still in use must not be given back.
  if (sigaltstack(&disabled, nullptr) == 0) munmap(memory_, kSignalStackBytes);
}

}  // namespace weft::fibers
