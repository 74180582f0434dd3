// Random numbers that are the same on every machine.
#pragma once

#include <cstdint>

namespace weft::sim {

// A splitmix64 generator, for which every seed is equally good. The streams of one seed are
// independent, so an additional decision of one kind changes no decision of another kind.
class Chance {
 public:
  Chance(std::uint64_t seed, std::uint64_t stream) noexcept
      : state_(seed * 0xD1342543DE82EF95ULL + stream * 0x9E6C63D0876A9A99ULL) {
    (void)next();
  }

  [[nodiscard]] std::uint64_t next() noexcept {
    std::uint64_t bits = state_ += 0x9E3779B97F4A7C15ULL;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBULL;
    return bits ^ (bits >> 31);
  }
  // Returns a number in [0, bound), for a bound of at least 1. The bias is below bound / 2^64.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }
  // Returns a number in [least, most].
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) noexcept {
    if (most <= least) return least;
    return least + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most - least) + 1));
  }
  // Returns true with the given probability. It uses 53 bits, which a double holds without
  // rounding.
  [[nodiscard]] bool is_true(double probability) noexcept {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

 private:
  std::uint64_t state_;
};

}  // namespace weft::sim
