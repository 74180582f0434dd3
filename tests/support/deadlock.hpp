// Helps tests of deadlocks.
#pragma once

#include <signal.h>

#if defined(__SANITIZE_THREAD__)
#define WEFT_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TEST_TSAN 1
#endif
#endif

namespace weft::test {

inline constexpr const char* kNoVerdict =
    "the thread sanitizer runs its own thread, so no deadlock can be certain";

#ifdef WEFT_TEST_TSAN
inline constexpr bool kDeadlocksAreFound = false;
#else
inline constexpr bool kDeadlocksAreFound = true;
#endif

// Restores the default handling of SIGINT and SIGTERM for a scope. A handler might wake a fiber, so
// with one, no deadlock would be certain.
class WithoutSignalHandlers {
 public:
  WithoutSignalHandlers() noexcept
      : interrupt_(signal(SIGINT, SIG_DFL)), terminate_(signal(SIGTERM, SIG_DFL)) {}
  ~WithoutSignalHandlers() {
    signal(SIGINT, interrupt_);
    signal(SIGTERM, terminate_);
  }
  WithoutSignalHandlers(const WithoutSignalHandlers&) = delete;
  WithoutSignalHandlers& operator=(const WithoutSignalHandlers&) = delete;

 private:
  void (*interrupt_)(int);
  void (*terminate_)(int);
};

}  // namespace weft::test
