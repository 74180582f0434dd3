#include "base/random.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>

#include "tests/support/random.hpp"

namespace {

using weft::base::Random;

TEST_SUITE_BEGIN("base/random");

TEST_CASE("below() returns a number below its bound") {
  weft::test::Random seeds(1);
  for (int round = 0; round < 100; ++round) {
    Random random(seeds());
    CHECK(random.below(1) == 0);
    const auto bound = static_cast<std::uint32_t>(1 + seeds.below(1000));
    for (int i = 0; i < 200; ++i) REQUIRE(random.below(bound) < bound);
    REQUIRE(random.below(std::numeric_limits<std::uint32_t>::max()) <
            std::numeric_limits<std::uint32_t>::max());
  }
}

TEST_CASE("a random generator with seed 0 returns numbers that use every bit") {
  Random random(0);
  std::uint64_t seen = 0;
  for (int i = 0; i < 100; ++i) seen |= random.next();
  CHECK(seen == std::numeric_limits<std::uint64_t>::max());
}

// With 64 000 draws into 64 bins, each bin has 1000 +- 32 draws; a difference of 250 is not due to
// chance.
TEST_CASE("random numbers below a bound are spread evenly") {
  Random random(weft::test::Random(2)());
  std::array<int, 64> bins{};
  for (int i = 0; i < 64'000; ++i) ++bins[random.below(64)];
  for (const int bin : bins) {
    CHECK(bin > 750);
    CHECK(bin < 1250);
  }
}

TEST_SUITE_END();

}  // namespace
