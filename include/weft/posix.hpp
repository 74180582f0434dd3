// Runs unchanged blocking libraries in fibers: their calls to the C library park the fiber. The
// library is weft-posix; docs/posix.md is its guide.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/this_fiber.hpp>

namespace weft::posix {

// Selects what a fiber does with its locked pthread mutexes and rwlocks when a call would park it.
enum class Locks : std::uint8_t {
  strict,  // The call blocks the worker, and report() counts the call.
  // The fiber parks while it holds the locks. Fibers that need such a lock park until it is
  // released, whether they have a Scope or not; plain threads block. `strict` applies instead in
  // builds with debug_locks, during a pthread_once(), and with more than 14 locks. It also applies
  // to locks taken before the process's first Scope with `carry`. The process ends with a message
  // if a fiber that must not park needs a lock that another fiber of its worker holds.
  carry,
};

// Options of a Scope.
// Context: plain value.
struct ScopeOptions {
  Locks locks = Locks::strict;
};

// While a Scope exists, most blocking calls to the C library, by any library, park the fiber that
// makes them (docs/posix.md): reads and writes on sockets and pipes, connect, accept, poll, select,
// epoll_wait, sleeps, waitpid, name lookups, file opens and reads, fsync, and waits on pthread
// condition variables and POSIX semaphores. The fiber stays on its thread, as with this_fiber::Pin,
// and has its own values for pthread keys. this_fiber::until() can end most of the calls with
// ETIMEDOUT or ECANCELED. In a NoSwitch scope, or if the fiber holds a pthread lock without
// Locks::carry (except the mutex of a condition wait), a call blocks the worker, and report()
// counts it. Scopes nest; Locks::carry in one applies to all. Scopes do not affect plain threads.
// Context: the fiber or plain thread that makes a Scope must destroy it; the destructor may park.
// Ordering: intercepted calls synchronize as they do on plain threads.
class Scope {
 public:
  // Begins the scope.
  // Throws: std::bad_alloc; std::system_error (std::errc::not_supported) under the thread
  // sanitizer, or if link order or hidden symbols prevent the interception.
  Scope() : Scope(ScopeOptions{}) {}
  explicit Scope(const ScopeOptions& options);
  // Ends the scope. The outermost scope destroys the pthread keys' values, and may park.
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  this_fiber::Pin pin_;
  const bool carries_;
};

// Returns a callable that calls `function` within a new Scope: `go(in_scope(f))` for a fiber,
// `pool.submit(in_scope(f))` for a task.
// Context: fibers and plain threads; does not park. The callable parks if Scope or `function` does.
// Throws: what moving `function` throws; the callable throws what Scope and `function` throw.
template <class F>
[[nodiscard]] auto in_scope(const ScopeOptions& options, F function) {
  return [options, function = std::move(function)]<class... Arguments>(
             Arguments&&... arguments) mutable -> std::invoke_result_t<F&, Arguments...> {
    const Scope scope(options);
    return std::invoke(function, std::forward<Arguments>(arguments)...);
  };
}
template <class F>
[[nodiscard]] auto in_scope(F function) {
  return in_scope(ScopeOptions{}, std::move(function));
}

// The BlockedCalls::reason of calls that this library does not intercept, such as stdio calls.
inline constexpr std::string_view kNotIntercepted = "not intercepted";

// Counts the calls to one function, from one place, that blocked workers for the same reason.
// Context: plain value.
struct BlockedCalls {
  std::string call;    // The name in the C library, such as "recv".
  std::string reason;  // Why the fiber could not park, such as "a pthread lock is held".
  std::string from;    // The function that made the call, or its file and offset.
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds longest{0};
};

// Returns the calls that have blocked workers in this process, in descending order of total time.
// Includes calls that are not intercepted if they last for at least RuntimeOptions::stall. With
// WEFT_POSIX_SYSTEM_CALLS=1 in the environment, includes every such call that blocks (a diagnostic
// mode, docs/posix.md). Their names are "unknown" under a sanitizer or if stall_calls is false.
// Context: fibers and plain threads; does not park.
// Throws: std::bad_alloc.
[[nodiscard]] std::vector<BlockedCalls> report();

}  // namespace weft::posix
