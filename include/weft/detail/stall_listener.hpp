// A library's own look at fibers that keep their worker in a system call.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

namespace weft::fibers {
struct Fiber;
}

namespace weft::detail {

// The threads of monitors call it. It must not park, throw or wait for a lock of the program.
class StallListener {
 public:
  StallListener() = default;
  virtual ~StallListener() = default;
  StallListener(const StallListener&) = delete;
  StallListener& operator=(const StallListener&) = delete;

  // Returns whether begin() is to be called. The fiber may have ended.
  [[nodiscard]] virtual bool is_of_interest(const fibers::Fiber* fiber) const noexcept = 0;
  // A fiber has been seen blocked, and has run for `lasted` by now. `calls` are as in StallReport.
  // Returns a number for end(); 0 if that need not be called.
  [[nodiscard]] virtual std::uint64_t begin(std::span<const void* const> calls,
                                            std::chrono::nanoseconds lasted) const noexcept = 0;
  // The fiber has continued, `more` after the call of begin().
  virtual void end(std::uint64_t number, std::chrono::nanoseconds more) const noexcept = 0;
};

// Installs the listener of this process, for all runtimes; it is never destroyed.
void listen_to_stalls(const StallListener& listener) noexcept;
// Null if there is none.
[[nodiscard]] const StallListener* stall_listener() noexcept;

}  // namespace weft::detail
