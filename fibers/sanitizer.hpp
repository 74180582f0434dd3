// Informs the sanitizers about stacks. In other builds, the functions are empty.
#pragma once

#include <cstddef>

#include "base/sanitizers.hpp"

// Selects a build that also finds races between fibers of one worker; tests/README.md describes it.
#if defined(WEFT_TSAN_NO_SYNC) && !defined(WEFT_TSAN)
#define WEFT_TSAN 1
#endif

#ifdef WEFT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WEFT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// valgrind treats a switch to an unknown stack as a huge frame, and reports accesses there as
// errors. The requests to valgrind are a few instructions, which have no effect outside of
// valgrind.
#if !defined(WEFT_ASAN) && !defined(WEFT_TSAN) && !defined(WEFT_NO_VALGRIND) && \
    __has_include(<valgrind/valgrind.h>)
#define WEFT_VALGRIND 1
#include <valgrind/valgrind.h>
#endif

namespace weft::fibers {

#if defined(WEFT_ASAN) || defined(WEFT_TSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Records for ThreadSanitizer that a spawn or a wake synchronizes with the fiber's next step. A
// switch does not synchronize.
inline void happens_before([[maybe_unused]] void* fiber) noexcept {
#ifdef WEFT_TSAN_NO_SYNC
  __tsan_release(fiber);
#endif
}
inline void happens_after([[maybe_unused]] void* fiber) noexcept {
#ifdef WEFT_TSAN_NO_SYNC
  __tsan_acquire(fiber);
#endif
}

// Acquires the effects of all fibers of all threads, up to each fiber's last switch. Requires that
// no fiber runs during the call.
#ifdef WEFT_TSAN_NO_SYNC
inline char all_fibers = 0;
#endif
inline void happens_after_all() noexcept {
#ifdef WEFT_TSAN_NO_SYNC
  __tsan_acquire(&all_fibers);
#endif
}

// The identity of a thread between two fibers, while it runs the After of the fiber that left. This
// identity has acquired all effects of the fibers whose Afters it ran. A fiber acquires from it
// only what the After itself releases.
class SanitizerBetween {
 public:
  void create() noexcept {
#ifdef WEFT_TSAN_NO_SYNC
    fiber_ = __tsan_create_fiber(0);
#endif
  }
  void destroy() noexcept {
#ifdef WEFT_TSAN_NO_SYNC
    __tsan_destroy_fiber(fiber_);
#endif
  }

 private:
  friend class SanitizerStack;
#ifdef WEFT_TSAN_NO_SYNC
  void* fiber_ = nullptr;
#endif
};

// Describes one stack to the sanitizers.
class SanitizerStack {
 public:
  // Call it before the first write to memory whose last user never returned from its frames.
  static void unpoison([[maybe_unused]] const void* bottom,
                       [[maybe_unused]] std::size_t size) noexcept {
#ifdef WEFT_ASAN
    __asan_unpoison_memory_region(bottom, size);
#endif
  }
  // Registers a stack of [bottom, bottom + size).
  void create([[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t size) noexcept {
#ifdef WEFT_ASAN
    bottom_ = bottom;
    size_ = size;
#endif
#ifdef WEFT_TSAN
    fiber_ = __tsan_create_fiber(0);
#endif
#ifdef WEFT_VALGRIND
    valgrind_id_ = VALGRIND_STACK_REGISTER(bottom, static_cast<const char*>(bottom) + size);
#endif
  }
  // Returns whether stacks must be destroyed one by one, because valgrind counts them.
  [[nodiscard]] static bool watched_by_valgrind() noexcept {
#ifdef WEFT_VALGRIND
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
  }
  // Registers the calling thread's own stack.
  void adopt_thread() noexcept {
#ifdef WEFT_TSAN
    fiber_ = __tsan_get_current_fiber();
#endif
  }
  void destroy() noexcept {
#ifdef WEFT_TSAN
    __tsan_destroy_fiber(fiber_);
#endif
#ifdef WEFT_VALGRIND
    VALGRIND_STACK_DEREGISTER(valgrind_id_);
#endif
  }

  // The code that leaves a stack calls it last, before the jump.
  void leave_for([[maybe_unused]] SanitizerStack& to,
                 [[maybe_unused]] const SanitizerBetween& between) noexcept {
#ifdef WEFT_ASAN
    __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.size_);
#endif
#ifdef WEFT_TSAN
#ifdef WEFT_TSAN_NO_SYNC
    __tsan_release(this);
    __tsan_release(&all_fibers);
    __tsan_switch_to_fiber(between.fiber_, __tsan_switch_to_fiber_no_sync);
#else
    __tsan_switch_to_fiber(to.fiber_, 0);
#endif
#endif
  }
  // The code that arrives calls it first, after the jump. Records the bounds of `from`, which are
  // unknown for a thread's own stack until the first switch.
  void arrive_from([[maybe_unused]] SanitizerStack& from) noexcept {
#ifdef WEFT_ASAN
    __sanitizer_finish_switch_fiber(fake_stack_, &from.bottom_, &from.size_);
#endif
#ifdef WEFT_TSAN_NO_SYNC
    __tsan_acquire(&from);
#endif
  }
  // The code that arrives calls it after it has run the After of the fiber that left.
  void go_on() noexcept {
#ifdef WEFT_TSAN_NO_SYNC
    __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
#endif
  }

 private:
#ifdef WEFT_ASAN
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
#endif
#ifdef WEFT_TSAN
  void* fiber_ = nullptr;
#endif
#ifdef WEFT_VALGRIND
  unsigned valgrind_id_ = 0;
#endif
};

}  // namespace weft::fibers
