#include "base/signal_handlers.hpp"

#include <algorithm>
#include <array>
#include <weft/detail/atomic.hpp>

#include "base/pin.hpp"

namespace weft::base {

namespace {

// Relaxed: the entries contain only addresses. The caller calls sigaction() later in the same
// thread. A reader that sees the handler before its entry treats it as a handler of the program,
// which is harmless.
std::array<detail::Atomic<const void*>, 8> own_handlers;

bool is_own(const void* handler) noexcept {
  return std::ranges::any_of(
      own_handlers, [handler](const auto& own) { return own.load(detail::relaxed) == handler; });
}

bool tells_of_a_fault(int number) noexcept {
  constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  return std::ranges::find(kFaults, number) != kFaults.end();
}

}  // namespace

void add_own_signal_handler(const void* handler) noexcept {
  for (auto& own : own_handlers) {
    const void* expected = nullptr;
    if (own.compare_exchange_strong(expected, handler, detail::relaxed, detail::relaxed)) return;
    if (expected == handler) return;
  }
}

bool install_own_signal_handler(int signal, void (*handler)(int, siginfo_t*, void*)) noexcept {
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0) return false;
  if ((current.sa_flags & SA_SIGINFO) != 0) return current.sa_sigaction == handler;
  if (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN) return false;
  pin_this_module();
  add_own_signal_handler(reinterpret_cast<const void*>(handler));
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  return sigaction(signal, &action, nullptr) == 0;
}

bool has_foreign_signal_handler() noexcept {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    // sigaction() fails for the signals that the C library uses itself.
    if (tells_of_a_fault(number) || sigaction(number, nullptr, &action) != 0) continue;
    const bool takes_info = (action.sa_flags & SA_SIGINFO) != 0;
    if (!takes_info && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) continue;
    const void* handler = takes_info ? reinterpret_cast<const void*>(action.sa_sigaction)
                                     : reinterpret_cast<const void*>(action.sa_handler);
    if (!is_own(handler)) return true;
  }
  return false;
}

}  // namespace weft::base
