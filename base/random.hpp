// A small, fast random generator.
#pragma once

#include <cstdint>

namespace weft::base {

// The generator xorshift64*, which suffices for scheduling decisions, but not for secrets. Only one
// thread at a time may use a generator.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed | 1) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  // Returns a number in [0, bound). The bias is below bound / 2^32.
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

// Returns 64 random bits from the calling thread's own generator, or from the simulation's.
[[nodiscard]] std::uint64_t thread_random() noexcept;

}  // namespace weft::base
