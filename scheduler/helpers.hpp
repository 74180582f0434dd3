// The scheduler's interface to the threads that make blocking calls for fibers.
#pragma once

#include <cstddef>
#include <system_error>
#include <weft/detail/blocking.hpp>

namespace weft::scheduler {

// The runtime creates the helpers first, passes them down, and destroys them last, as it does with
// the event source. A call takes two steps. Before its fiber parks, expect() ensures that there
// will be a helper for it: all failures happen there. On the other side of the switch, submit()
// passes the call to a helper. So a fast helper cannot wake a fiber that is not parked yet.
class Helpers {
 public:
  Helpers() = default;
  virtual ~Helpers() = default;
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  // Any thread may call it. Returns an error if there is no helper and no helper could be started.
  // Without an error, exactly one submit() must follow.
  [[nodiscard]] virtual std::error_code expect() noexcept = 0;
  // Any thread may call it. A helper makes the call. At its end the call wakes its waker, or may
  // free itself.
  virtual void submit(detail::BlockingCall& call) noexcept = 0;
  // Returns the number of existing helpers; it may be stale.
  [[nodiscard]] virtual std::size_t size_hint() noexcept = 0;
};

}  // namespace weft::scheduler
