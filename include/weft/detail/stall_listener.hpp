// Declares the listener that is notified when a fiber blocks its worker, usually in a system call.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

namespace weft::fibers {
struct Fiber;
}

namespace weft::detail {

// Monitor threads call these functions, which must not park, throw or wait for user code's locks.
class StallListener {
 public:
  StallListener() = default;
  virtual ~StallListener() = default;
  StallListener(const StallListener&) = delete;
  StallListener& operator=(const StallListener&) = delete;

  // Returns whether the monitor must call begin() for the fiber. The fiber may already have ended.
  [[nodiscard]] virtual bool is_of_interest(const fibers::Fiber* fiber) const noexcept = 0;
  // Called when the monitor finds that a fiber has blocked its worker for `lasted`. `calls` has the
  // meaning of StallReport::calls. Returns a number for end(), or 0 if end() need not be called.
  [[nodiscard]] virtual std::uint64_t begin(std::span<const void* const> calls,
                                            std::chrono::nanoseconds lasted) const noexcept = 0;
  // Called once the monitor sees that the fiber has continued; `more` is the time since begin().
  virtual void end(std::uint64_t number, std::chrono::nanoseconds more) const noexcept = 0;
};

// Installs the listener for all runtimes in this process. The listener must never be destroyed.
void listen_to_stalls(const StallListener& listener) noexcept;
// Returns the installed listener; null if there is none.
[[nodiscard]] const StallListener* stall_listener() noexcept;

}  // namespace weft::detail
