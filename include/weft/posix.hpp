// Runs unchanged blocking libraries in fibers: their calls of the C library park the fiber. This is
// the library weft-posix; docs/posix.md is its guide.
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

// What a fiber does with pthread mutexes and rwlocks that it holds when a call would park.
enum class Locks : std::uint8_t {
  strict,  // It keeps them: the call blocks the worker, and report() counts it.
  // It parks while it holds them. Fibers that need such a lock park until it is released, whether
  // they have a Scope or not; plain threads block. It has the effect of `strict` in builds with
  // debug_locks, during a pthread_once(), with more than 14 locks, and with locks taken before the
  // first such Scope of the process. If a fiber that must not park needs such a lock, held by a
  // fiber of its own worker, the process ends with a message.
  carry,
};

// Options of a Scope.
// Context: plain value.
struct ScopeOptions {
  Locks locks = Locks::strict;
};

// While a Scope exists, blocking calls of the C library park the calling fiber, whichever library
// makes them. The intercepted calls are: reads and writes of sockets and pipes, connect, accept,
// poll, select, epoll_wait, sleeps, waitpid, getaddrinfo, gethostbyname, opens and reads of files,
// fsync, and waits for pthread condition variables and POSIX semaphores. The fiber keeps its
// thread, as with this_fiber::Pin, and has its own values of pthread keys. this_fiber::until() ends
// a call with ETIMEDOUT or ECANCELED. In a NoSwitch scope, or while the fiber holds a pthread lock
// that it does not carry, a call blocks the worker, and report() counts it. Scopes nest; locks are
// carried if any of the scopes carries them. A scope on a plain thread has no effect.
// Context: the fiber or plain thread that makes it also destroys it; the destructor may park.
// Ordering: calls synchronize as they do on threads.
class Scope {
 public:
  // Begins the scope.
  // Throws: std::bad_alloc. std::system_error (std::errc::not_supported) if the program's calls do
  // not reach this library because of its link order, or under the thread sanitizer.
  Scope() : Scope(ScopeOptions{}) {}
  explicit Scope(const ScopeOptions& options);
  // Ends the scope; the outermost destroys the values of pthread keys, whose destructors may park.
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  this_fiber::Pin pin_;
  const bool carries_;
};

// Returns a callable that calls `function` in a Scope of its own: `go(in_scope(f))` for a fiber,
// `pool.submit(in_scope(f))` for a task.
// Context: fibers and plain threads; does not park. The callable parks as Scope and `function` do.
// Throws: what moving `function` throws; the callable throws as Scope and `function` do.
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

// The reason in rows of calls that this library does not intercept, such as stdio's.
inline constexpr std::string_view kNotIntercepted = "not intercepted";

// Calls of one kind, made from one place in a scope, that blocked their worker.
// Context: plain value.
struct BlockedCalls {
  std::string call;    // Its name in the C library: "recv".
  std::string reason;  // Why the fiber could not park: "a pthread lock is held".
  std::string from;    // The function that made the call, or its file and offset.
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds longest{0};
};

// Returns the calls that have blocked workers in this process, the longest total first. Of the
// calls that are not intercepted, it reports calls that last for RuntimeOptions::stall. With
// WEFT_POSIX_SYSTEM_CALLS=1 in the environment it reports all that wait (a diagnostic mode,
// docs/posix.md). Their names need RuntimeOptions::stall_calls and a build without sanitizers.
// Context: fibers and plain threads; does not park.
// Throws: std::bad_alloc.
[[nodiscard]] std::vector<BlockedCalls> report();

}  // namespace weft::posix
