// Samples of how long fibers wait, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <typeinfo>
#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>

#include "fibers/calls/backtrace.hpp"
#include "fibers/fiber.hpp"

namespace weft::scheduler {

// A wait of a fiber.
struct WaitSample {
  std::uint64_t weight = 1;      // How many waits it stands for.
  std::int64_t nanoseconds = 0;  // Until the fiber ran again, or so far.
  detail::WaitReason reason{};
  fibers::FiberName::Copy name{};        // The fiber's name, or none.
  const std::type_info* type = nullptr;  // The type of the fiber's callable; null: unknown.
  fibers::Backtrace calls;               // The fiber's calls, from the library's on.
};

// A set of reasons to wait.
using WaitReasons = std::uint32_t;
[[nodiscard]] constexpr WaitReasons reasons_of(detail::WaitReason reason) noexcept {
  return WaitReasons{1} << static_cast<unsigned>(reason);
}

// The reasons that are being recorded; 0: no recording lasts. Relaxed: a hint; each worker sees it
// when it looks around.
extern detail::Atomic<WaitReasons> recorded_waits;

// Samples the waits of fibers that leave a worker: each wait at first, and fewer where there are
// many, which is some 16 in 10 ms, but at least each 1024th. Owner: the worker.
class WaitSampler {
 public:
  // Whether look() has something to do.
  [[nodiscard]] bool is_stale() const noexcept {
    return recorded_waits.load(detail::relaxed) != reasons_;
  }
  void look() noexcept;
  [[nodiscard]] bool is_on() const noexcept { return reasons_ != 0; }

  // Call these when it is on: the fiber that runs here is about to leave, which the call that
  // returns to `caller` sees to; the fiber runs.
  void leaves(const fibers::Fiber& fiber, const void* caller) noexcept;
  void runs(const fibers::Fiber& fiber) noexcept;

 private:
  [[gnu::noinline]] void begin_wait(const fibers::Fiber& fiber, const void* caller) noexcept;
  void adapt(std::int64_t now) noexcept;

  WaitReasons reasons_ = 0;
  std::uint32_t interval_ = 1;  // One wait is sampled of this number.
  std::uint32_t left_ = 1;      // Until the next one.
  std::uint32_t taken_ = 0;     // Since `period_`.
  std::int64_t period_ = 0;     // Nanoseconds; when the period began.
};

// A recording of all workers. Owner: a plain thread. The caller sees to it that there is one at a
// time in the process.
class WaitRecording {
 public:
  using See = std::function<void(const WaitSample&)>;

  // Asks all workers to watch which fibers run; they do so within some milliseconds. Throws
  // std::bad_alloc.
  WaitRecording();
  ~WaitRecording();
  WaitRecording(const WaitRecording&) = delete;
  WaitRecording& operator=(const WaitRecording&) = delete;

  // Records waits for one of these reasons that begin from now on. Call it when the workers watch:
  // a worker that does not sees no end of a wait.
  void begin(WaitReasons reasons) noexcept;
  // Passes on the waits that have ended. Call it every few milliseconds: there is room for 4096
  // waits, ended or not.
  void drain(const See& see);
  // Ends the recording, and passes on all waits, also if they still last.
  void finish(const See& see);
  // The number of waits for which there was no room.
  [[nodiscard]] static std::uint64_t lost() noexcept;
};

}  // namespace weft::scheduler
