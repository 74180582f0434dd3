// Samples how long fibers wait, and where they wait.
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
  std::uint64_t weight = 1;      // The number of waits that this sample represents.
  std::int64_t nanoseconds = 0;  // Duration until the fiber ran again, or until now.
  detail::WaitReason reason{};
  fibers::FiberName::Copy name{};        // The fiber's name, or none.
  const std::type_info* type = nullptr;  // The type of the fiber's callable; null: unknown.
  fibers::Backtrace calls;               // The call stack; the library's calls come first.
};

// A set of wait reasons, with one bit for each reason.
using WaitReasons = std::uint32_t;
[[nodiscard]] constexpr WaitReasons reasons_of(detail::WaitReason reason) noexcept {
  return WaitReasons{1} << static_cast<unsigned>(reason);
}

// The reasons whose waits are being recorded, or 0 if there is no recording. Relaxed: a worker may
// read a new value late.
extern detail::Atomic<WaitReasons> recorded_waits;

// Samples the waits of fibers that leave a worker. At first it samples every wait. If waits are
// frequent, it samples about 16 waits per 10 ms, but at least one wait in 1024. Owner: the worker.
class WaitSampler {
 public:
  // Returns whether look() has something to do.
  [[nodiscard]] bool is_stale() const noexcept {
    return recorded_waits.load(detail::relaxed) != reasons_;
  }
  void look() noexcept;
  [[nodiscard]] bool is_on() const noexcept { return reasons_ != 0; }

  // Call these while sampling is on. Call leaves() before a fiber leaves its worker; the sampled
  // call stack begins at the return address `caller`. Call runs() when `fiber` begins to run.
  void leaves(const fibers::Fiber& fiber, const void* caller) noexcept;
  void runs(const fibers::Fiber& fiber) noexcept;

 private:
  [[gnu::noinline]] void begin_wait(const fibers::Fiber& fiber, const void* caller) noexcept;
  void adapt(std::int64_t now) noexcept;

  WaitReasons reasons_ = 0;
  std::uint32_t interval_ = 1;  // The number of waits per sample.
  std::uint32_t left_ = 1;      // The number of waits until the next sample.
  std::uint32_t taken_ = 0;     // Samples since `period_`.
  std::int64_t period_ = 0;     // The time at which the period began, in nanoseconds.
};

// Records the waits on all workers. Owner: a plain thread. The caller ensures that the process has
// only one recording at a time.
class WaitRecording {
 public:
  using See = std::function<void(const WaitSample&)>;

  // Within a few milliseconds, all workers begin to record which fibers run. Throws std::bad_alloc.
  WaitRecording();
  ~WaitRecording();
  WaitRecording(const WaitRecording&) = delete;
  WaitRecording& operator=(const WaitRecording&) = delete;

  // Begins to record the waits for these reasons. Must be called after the workers have begun to
  // record which fibers run; otherwise, a worker could miss the end of a wait.
  void begin(WaitReasons reasons) noexcept;
  // Calls `see` with each wait that has ended. Must be called every few milliseconds, because there
  // is room for 4096 waits, ended or not.
  void drain(const See& see);
  // Ends the recording, and calls `see` with all waits, including unfinished waits.
  void finish(const See& see);
  // Returns the number of waits that were lost because the table had no room.
  [[nodiscard]] static std::uint64_t lost() noexcept;
};

}  // namespace weft::scheduler
