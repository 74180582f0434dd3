// The cheapest clock of the processor.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace weft::base {

// Grows evenly, by an amount a second that only a comparison with another clock tells, and is the
// same on all processors, as far as the system says so of its own. A few nanoseconds.
[[nodiscard]] inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return static_cast<std::uint64_t>(Deadline::now_nanoseconds());
#endif
}

}  // namespace weft::base
