// Access to the leak checker of the address sanitizer.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_SIM_CHECKS_LEAKS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_SIM_CHECKS_LEAKS
#endif
#endif

#ifdef WEFT_SIM_CHECKS_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

namespace weft::sim {

// The leak checker ignores what the calling thread allocates from now on. The fibers of an ended
// world and of a crashed host are given up with everything that they hold.
inline void ignore_leaks_of_this_thread() noexcept {
#ifdef WEFT_SIM_CHECKS_LEAKS
  __lsan_disable();
#endif
}

}  // namespace weft::sim
