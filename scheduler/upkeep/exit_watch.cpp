#include "scheduler/upkeep/exit_watch.hpp"

#include <cstdint>
#include <utility>
#include <weft/detail/exceptions.hpp>

#include "fibers/sanitizer.hpp"

namespace weft::scheduler {

namespace {

std::uintptr_t frame_address() noexcept {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

// A thread that ends destroys the sentinel on the thread's own stack; exit() destroys it on the
// stack of the caller of exit().
class Sentinel {
 public:
  ~Sentinel() {
    // The stacks of workers are larger than this distance, and the frame of the watch is near the
    // beginning of such a stack.
    constexpr std::uintptr_t kNear = 16 << 10;
    const std::uintptr_t here = frame_address();
    const std::uintptr_t distance = here < start_ ? start_ - here : here - start_;
    if (start_ == 0 || distance > kNear) return;
    forget_frames_below(here);
    detail::end_with_thread();
  }
  // Returns the previous start. 0 means that there is no watch.
  std::uintptr_t watch(std::uintptr_t start) noexcept { return std::exchange(start_, start); }

 private:
  // The thread ended on a fiber's stack, so the worker's frames did not return. Their memory is
  // still poisoned for AddressSanitizer, which would report each function called from here.
  static void forget_frames_below(std::uintptr_t here) noexcept {
    constexpr std::uintptr_t kDeep = 256 << 10;
    fibers::SanitizerStack::unpoison(reinterpret_cast<const void*>(here - kDeep), kDeep);
  }

  std::uintptr_t start_ = 0;
};

// Each function that accesses a thread_local is kept out of line, even this one, which only plain
// threads call.
[[gnu::noinline]] Sentinel& sentinel() noexcept {
  thread_local Sentinel instance;
  return instance;
}

}  // namespace

ExitWatch::ExitWatch() noexcept { (void)sentinel().watch(frame_address()); }
ExitWatch::~ExitWatch() { (void)sentinel().watch(0); }

ExitWatch::Pause::Pause() noexcept : start_(sentinel().watch(0)) {}
ExitWatch::Pause::~Pause() { (void)sentinel().watch(start_); }

}  // namespace weft::scheduler
