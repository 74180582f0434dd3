#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <weft/detail/first_use.hpp>
#include <weft/detail/fork.hpp>
#include <weft/posix.hpp>

#include "libs/posix/blocked_calls.hpp"
#include "libs/posix/carried_locks.hpp"
#include "libs/posix/fiber_state.hpp"
#include "libs/posix/hooks.hpp"
#include "libs/posix/samples.hpp"
#include "libs/posix/system_calls.hpp"

namespace weft::posix {

namespace {

#ifndef WEFT_POSIX_WITHOUT_HOOKS
// Returns a function of the C library that this library fails to intercept, or null.
const char* find_missing() noexcept {
  for (const auto& hooks : {receive_hooks(), send_hooks(), connection_hooks(), poll_hooks(),
                            sleep_hooks(), helper_hooks(), name_hooks(), file_hooks(), lock_hooks(),
                            key_hooks(), condition_hooks(), semaphore_hooks()}) {
    for (const Hook& hook : hooks) {
      if (::dlsym(RTLD_DEFAULT, hook.name) != hook.address) return hook.name;
    }
  }
  return nullptr;
}

// Prepares the process for its first Scope. Returns what find_missing() returns.
const char* begin() noexcept {
  listen_to_monitors();
  begin_system_calls();
  return find_missing();
}

const detail::ForkHandlers posix_fork_handlers(
    detail::ForkHandlers::Locks::inner, [] {}, [] {},
    [] {
      forget_conditions();
      forget_semaphores();
      forget_carried_locks();
      forget_states();
      forget_blocked_calls();
      forget_samples();
    });
#endif

[[noreturn]] void refuse(const std::string& why) {
  throw std::system_error(std::make_error_code(std::errc::not_supported),
                          "weft::posix::Scope: " + why);
}

void check_hooks() {
#ifdef WEFT_POSIX_WITHOUT_HOOKS
  refuse("this build has the thread sanitizer, which intercepts the same functions");
#else
  add_metrics();
  const char* const missing = detail::computed_once<&begin>();
  if (missing == nullptr) return;
  refuse("calls of " + std::string(missing) +
         "() do not reach weft-posix; link weft-posix before the C library, without "
         "-Wl,--exclude-libs and without a version script that hides the function");
#endif
}

}  // namespace

void* next_function(const char* name, [[maybe_unused]] const char* version) noexcept {
#ifdef __GLIBC__
  // Newer architectures have only one version of each function.
  if (version != nullptr) {
    if (void* found = ::dlvsym(RTLD_NEXT, name, version)) return found;
  }
#endif
  if (void* found = ::dlsym(RTLD_NEXT, name)) return found;
  // This uses the raw system call, because the C library's write() would end here again.
  const auto say = [](const char* text) {
    (void)::syscall(SYS_write, STDERR_FILENO, text, std::strlen(text));
  };
  say("weft-posix: cannot find ");
  say(name);
  say("() of the C library; link the program dynamically\n");
  std::abort();
}

Scope::Scope(const ScopeOptions& options)
    : carries_(options.locks == Locks::carry && this_fiber::is_fiber()) {
  if (!this_fiber::is_fiber()) return;
  check_hooks();
  FiberState& state = fiber_state();
#ifndef WEFT_POSIX_WITHOUT_HOOKS
  if (carries_) {
    if (state.carried == nullptr) state.carried = std::make_unique<CarriedLocks>();
    begin_carrying();
    ++state.carry_scopes;
  }
#endif
  ++state.scopes;
  state.set_sampled(true);
#ifndef WEFT_POSIX_WITHOUT_HOOKS
  begin_scope_if_on();
#endif
}

Scope::~Scope() {
  if (!this_fiber::is_fiber()) return;
  FiberState& state = fiber_state();
  // The scope still counts here, so the destructors see the values of the fiber.
#ifndef WEFT_POSIX_WITHOUT_HOOKS
  if (state.scopes == 1) {
    destroy_key_values(state);
    see_system_calls_if_on(false);
  }
#endif
  if (carries_) --state.carry_scopes;
  if (--state.scopes == 0) state.set_sampled(false);
}

}  // namespace weft::posix
