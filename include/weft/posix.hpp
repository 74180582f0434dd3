// Libraries that block, unchanged, in fibers: their calls of the C library park the fiber.
// A library of its own, weft-posix; docs/posix.md is its guide.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>
#include <weft/this_fiber.hpp>

namespace weft::posix {

// While one lives, calls of the C library that would block park the calling fiber instead,
// whichever library makes them: reads and writes of sockets and pipes, connect, accept, poll,
// select, epoll_wait, sleeps, waitpid, getaddrinfo, reads of files and fsync. The fiber keeps its
// thread until then, as this_fiber::Pin says, and has values of pthread keys of its own, which are
// destroyed with the outermost scope. this_fiber::until() ends such a call with ETIMEDOUT or
// ECANCELED. A call that is made while the fiber holds a pthread lock, or is in a NoSwitch scope,
// blocks the worker, and is counted in report(). Scopes may be nested; a fiber ends them in the
// reverse order of their beginning. On a plain thread a scope changes nothing. The calls
// synchronize as on threads.
class Scope {
 public:
  // Any fiber or plain thread may begin a scope. Never parks. Throws std::system_error
  // (std::errc::not_supported) if the program is linked so that the calls do not come to this
  // library, or is built with the thread sanitizer, and std::bad_alloc.
  Scope();
  // The scope is ended by the same fiber or plain thread. If it is the outermost, the values of
  // pthread keys are destroyed; their destructors may park.
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  this_fiber::Pin pin_;
};

// Calls of one kind that were made in a scope from one place and blocked their worker. A plain
// value.
struct BlockedCalls {
  std::string call;    // Its name in the C library: "recv".
  std::string reason;  // Why the fiber could not park: "a pthread lock is held".
  std::string from;    // The function that made the call, or its file and offset.
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds longest{0};
};

// What has blocked workers since the process began, the longest total first: what to give to
// blocking() instead. Calls that this library does not see, as of stdio, are not in it. From fibers
// and plain threads; never parks. Throws std::bad_alloc. Synchronizes with nothing.
[[nodiscard]] std::vector<BlockedCalls> report();

}  // namespace weft::posix
