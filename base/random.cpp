#include "base/random.hpp"

#include <time.h>

#include <weft/detail/simulated.hpp>

namespace weft::base {

namespace {

// The calling thread's state is 0 until its first use. The generator is splitmix64, in which every
// state is valid, so any seed works.
constinit thread_local std::uint64_t random_state = 0;

std::uint64_t next_random() noexcept {
  std::uint64_t bits = random_state += 0x9E3779B97F4A7C15ULL;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBULL;
  return bits ^ (bits >> 31);
}

// This function is not inlined, so that the usual path makes no call and saves no registers.
[[gnu::noinline]] std::uint64_t random_of_simulation_or_new_state() noexcept {
  if (detail::is_simulated()) return detail::simulated()->random();
  if (random_state == 0) {
    timespec now{};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    // The address differs between threads that begin in the same nanosecond.
    random_state =
        reinterpret_cast<std::uintptr_t>(&random_state) + static_cast<std::uint64_t>(now.tv_nsec);
  }
  return next_random();
}

}  // namespace

// This function is not inlined, so that no caller keeps the address of the state across a switch.
[[gnu::noinline]] std::uint64_t thread_random() noexcept {
  if (detail::simulated() != nullptr || random_state == 0) [[unlikely]]
    return random_of_simulation_or_new_state();
  return next_random();
}

}  // namespace weft::base
