#include "base/random.hpp"

#include <time.h>

#include <weft/detail/simulated.hpp>

namespace weft::base {

// Not inlined, so that no caller keeps the address of the state across a switch. The generator is
// splitmix64: every state is a good one, so any seed will do.
[[gnu::noinline]] std::uint64_t thread_random() noexcept {
  if (detail::is_simulated()) [[unlikely]]
    return detail::simulated()->random();
  static thread_local std::uint64_t state = 0;
  if (state == 0) {
    timespec now{};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    // The address differs between threads that begin in the same nanosecond.
    state = reinterpret_cast<std::uintptr_t>(&state) + static_cast<std::uint64_t>(now.tv_nsec);
  }
  std::uint64_t bits = state += 0x9E3779B97F4A7C15ULL;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBULL;
  return bits ^ (bits >> 31);
}

}  // namespace weft::base
