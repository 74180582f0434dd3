// Reads the cheapest clock of the processor.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace weft::base {

// Returns a count that grows evenly; a comparison with another clock gives its rate. The count is
// the same on all processors if the system's own clock relies on it. A call takes a few
// nanoseconds.
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
