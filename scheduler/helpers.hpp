// The scheduler's interface to the threads that make blocking calls for fibers.
#pragma once

#include <cstddef>
#include <system_error>
#include <weft/detail/blocking.hpp>

namespace weft::scheduler {

// The runtime creates the helpers before the scheduler, and destroys them after it. A blocking call
// has two steps. Before the fiber parks, expect() ensures that a helper will be available; only
// this step can fail. After the fiber has parked, submit() passes the call to a helper. This order
// prevents a fast helper from waking a fiber that is not parked yet.
class Helpers {
 public:
  Helpers() = default;
  virtual ~Helpers() = default;
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  // Any thread may call it. Returns an error if no helper exists and none could be started. If
  // it succeeds, the caller must call submit() exactly once.
  [[nodiscard]] virtual std::error_code expect() noexcept = 0;
  // Any thread may call it. A helper makes the call and then wakes the call's fiber. If the call
  // has no waker, the helper wakes no fiber, and the call may destroy itself when it ends.
  virtual void submit(detail::BlockingCall& call) noexcept = 0;
  // Returns the number of existing helpers; it may be stale.
  [[nodiscard]] virtual std::size_t size_hint() noexcept = 0;
};

}  // namespace weft::scheduler
