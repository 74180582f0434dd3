// For tests of what happens when nothing can happen any more.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define WEFT_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TEST_TSAN 1
#endif
#endif

namespace weft::test {

inline constexpr const char* kNoVerdict =
    "skipped: the thread sanitizer runs a thread of its own, so no deadlock can be certain";

#ifdef WEFT_TEST_TSAN
inline constexpr bool kDeadlocksAreFound = false;
#else
inline constexpr bool kDeadlocksAreFound = true;
#endif

}  // namespace weft::test
