// Macros that show the sanitizer of the build: WEFT_ASAN, WEFT_TSAN and WEFT_MSAN.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define WEFT_MSAN 1
#endif
#endif
