// A small, fast random generator.
#pragma once

#include <cstdint>

namespace weft::base {

// xorshift64*: enough to spread victims and break ties; not for secrets. One owner.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed | 1) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  // In [0, bound). The bias is below bound / 2^32.
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

// 64 random bits from a generator of the calling thread's own.
[[nodiscard]] std::uint64_t thread_random() noexcept;

}  // namespace weft::base
