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

// If the thread ends, the destructor runs on the thread's own stack. If a fiber calls exit(), the
// destructor runs on the fiber's stack.
class Sentinel {
 public:
  ~Sentinel() {
    // If the thread ends, this frame and the ExitWatch's frame are both near the beginning of the
    // worker's stack. A fiber's stack is farther away, because the worker's stack is larger than
    // this distance.
    constexpr std::uintptr_t kNear = 16 << 10;
    const std::uintptr_t here = frame_address();
    const std::uintptr_t distance = here < start_ ? start_ - here : here - start_;
    if (start_ == 0 || distance > kNear) return;
    forget_frames_below(here);
    detail::end_with_thread();
  }
  // Sets the address of the ExitWatch's frame, and returns the previous one. 0 means no ExitWatch.
  std::uintptr_t watch(std::uintptr_t start) noexcept { return std::exchange(start_, start); }

 private:
  // The thread ended on a fiber's stack, so the functions on its own stack did not return. Their
  // frames are still poisoned, so AddressSanitizer would report each call made from here.
  static void forget_frames_below(std::uintptr_t here) noexcept {
    constexpr std::uintptr_t kDeep = 256 << 10;
    fibers::SanitizerStack::unpoison(reinterpret_cast<const void*>(here - kDeep), kDeep);
  }

  std::uintptr_t start_ = 0;
};

// Functions that access a thread_local object are not inlined, because a fiber may continue on
// another thread. This function follows that rule too, although no fiber calls it.
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
