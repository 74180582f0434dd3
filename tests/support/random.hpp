// Generates random numbers, and prints their seed when a test that uses them fails.
#pragma once

#include <cstdint>
#include <limits>

namespace weft::test {

// Returns the seed of this process: WEFT_TEST_SEED, or a new seed in every run.
[[nodiscard]] std::uint64_t test_seed();

// Returns a number of workers from 1 to 17 for stress tests, which depends on the stream and the
// seed.
[[nodiscard]] unsigned drawn_workers(std::uint64_t stream);

// Generates random numbers for one test, or for one of its threads or fibers. Each of them uses a
// separate stream, so the numbers do not depend on the order in which they run. Not thread-safe.
// Works with the distributions of <random>.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t stream = 0);

  [[nodiscard]] static constexpr result_type min() noexcept { return 0; }
  [[nodiscard]] static constexpr result_type max() noexcept {
    return std::numeric_limits<result_type>::max();
  }
  result_type operator()() noexcept;

  // Returns a number in [0, limit); `limit` is at least 1. The bias is below limit / 2^64.
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept { return (*this)() % limit; }
  [[nodiscard]] bool one_in(std::uint64_t chances) noexcept { return below(chances) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace weft::test
