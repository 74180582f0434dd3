#include "fibers/cold_stacks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "tests/support/random.hpp"

namespace {

using weft::fibers::ColdStacks;

constexpr std::size_t kBlock = ColdStacks::kBlock;

TEST_SUITE_BEGIN("fibers/cold_stacks");

ColdStacks with_blocks(std::size_t blocks) {
  ColdStacks cold;
  cold.make_room(blocks * kBlock);
  std::vector<std::uint32_t> indices(blocks * kBlock);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::uint32_t>(i);
  cold.add(indices);
  return cold;
}

TEST_CASE(
    "free stacks lose their guards from the highest block down, until only a given number of "
    "stacks have guards") {
  ColdStacks cold = with_blocks(8);
  const ColdStacks::Run run = cold.find_blocks(3, 2 * kBlock);
  CHECK(run.first == 5 * kBlock);
  CHECK(run.count == 3 * kBlock);
  cold.strip(run);
  CHECK(cold.bare() == 3 * kBlock);
  const ColdStacks::Run next = cold.find_blocks(4, 2 * kBlock);
  CHECK(next.first == 2 * kBlock);
  CHECK(next.count == 3 * kBlock);
  CHECK(cold.with_neighbours(next).first == 2 * kBlock);
  CHECK(cold.with_neighbours(next).count == 4 * kBlock);
  cold.strip(next);
  CHECK(cold.find_blocks(4, 2 * kBlock).count == 0);
  CHECK(cold.guarded() == 2 * kBlock);
}

TEST_CASE("a block of stacks keeps its guards while one of its stacks is in use") {
  ColdStacks cold = with_blocks(2);
  std::array<std::uint32_t, 1> taken{};
  CHECK(cold.take(taken).guarded == 1);
  CHECK(taken[0] / kBlock == 1);
  const ColdStacks::Run run = cold.find_blocks(2, 0);
  CHECK(run.first == 0);
  CHECK(run.count == kBlock);
  cold.add(taken);
  CHECK(cold.find_blocks(2, 0).count == 2 * kBlock);
}

TEST_CASE("stacks with guards are taken first when the free stacks have been sorted") {
  ColdStacks cold = with_blocks(2);
  cold.strip(cold.find_blocks(1, 0));
  cold.sort();
  std::vector<std::uint32_t> taken(kBlock + 2);
  const ColdStacks::Taken both = cold.take(taken);
  CHECK(both.count == kBlock + 2);
  CHECK(both.guarded == kBlock);
  CHECK(std::all_of(taken.begin(), taken.begin() + kBlock,
                    [](std::uint32_t index) { return index < kBlock; }));
  cold.add_bare(std::span(taken).last(2));
  cold.add(std::span(taken).first(kBlock));
  CHECK(cold.take(std::span(taken).first(kBlock)).guarded == kBlock);
  CHECK(cold.bare() == kBlock);
}

// Compares the recorded stacks with std::set objects.
TEST_CASE(
    "the set of free stacks never loses, duplicates or mislabels a stack under random operations") {
  weft::test::Random random;
  ColdStacks cold = with_blocks(6);
  std::set<std::uint32_t> guarded(cold.indices().begin(), cold.indices().end());
  std::set<std::uint32_t> bare;
  std::set<std::uint32_t> in_use;
  for (int round = 0; round < 3000; ++round) {
    if (random.one_in(20)) {
      const ColdStacks::Run run = cold.find_blocks(1 + random.below(3), random.below(2 * kBlock));
      cold.strip(run);
      for (std::size_t i = run.first; i < run.first + run.count; ++i) {
        const auto index = static_cast<std::uint32_t>(i);
        REQUIRE(guarded.erase(index) == 1);
        bare.insert(index);
      }
      if (random.one_in(2)) cold.sort();
    } else if (random.one_in(2)) {
      std::array<std::uint32_t, 32> taken{};
      const ColdStacks::Taken count = cold.take(taken);
      for (unsigned i = 0; i < count.count; ++i) {
        REQUIRE((i < count.guarded ? guarded : bare).erase(taken[i]) == 1);
        REQUIRE(in_use.insert(taken[i]).second);
      }
    } else {
      std::vector<std::uint32_t> given;
      while (!in_use.empty() && given.size() < 32) {
        given.push_back(*in_use.begin());
        in_use.erase(in_use.begin());
      }
      const bool is_refused = random.one_in(10);
      is_refused ? cold.add_bare(given) : cold.add(given);
      (is_refused ? bare : guarded).insert(given.begin(), given.end());
    }
    REQUIRE(cold.guarded() == guarded.size());
    REQUIRE(cold.bare() == bare.size());
  }
}

TEST_SUITE_END();

}  // namespace
