#include "base/magazine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/random.hpp"

namespace {

struct Item {
  Item* next = nullptr;
  int number = 0;
};

using Magazine = weft::base::Magazine<Item>;

std::vector<Item*> unchain(Item* chain) {
  std::vector<Item*> items;
  for (; chain != nullptr; chain = chain->next) items.push_back(chain);
  return items;
}

TEST_SUITE_BEGIN("base/magazine");

TEST_CASE("an empty magazine returns no item when its owner takes an item or drains the magazine") {
  Magazine magazine(4);
  CHECK(magazine.take() == nullptr);
  int chains = 0;
  magazine.drain([&](Item*) { ++chains; });
  CHECK(chains == 0);
  CHECK(weft::base::chain_length<Item>(nullptr) == 0);
}

TEST_CASE("a full magazine that receives one more item returns a chain of its oldest items") {
  constexpr std::uint32_t kSize = 3;
  Magazine magazine(kSize);
  std::vector<Item> items(2 * kSize + 1);
  for (std::size_t i = 0; i + 1 < items.size(); ++i) CHECK(magazine.give(items[i]) == nullptr);
  Item* surplus = magazine.give(items.back());
  CHECK(weft::base::chain_length(surplus) == kSize);
  CHECK(unchain(surplus) == std::vector<Item*>{&items[2], &items[1], &items[0]});
  CHECK(magazine.take() == &items.back());
}

TEST_CASE(
    "a magazine does not use its shared store when its owner repeatedly takes and returns two "
    "items") {
  Magazine magazine(2);
  std::vector<Item> items(3);
  for (Item& item : items) CHECK(magazine.give(item) == nullptr);
  for (int i = 0; i < 100; ++i) {
    Item* first = magazine.take();
    Item* second = magazine.take();
    REQUIRE(first != nullptr);
    REQUIRE(second != nullptr);
    CHECK(magazine.give(*second) == nullptr);
    CHECK(magazine.give(*first) == nullptr);
  }
}

// The oracle is a vector, used as a LIFO. The magazine must return the `size` oldest held items as
// its surplus.
TEST_CASE("a magazine returns the same items as a std::vector under random operations") {
  weft::test::Random random(1);
  for (int round = 0; round < 300; ++round) {
    const auto size = static_cast<std::uint32_t>(1 + random.below(9));
    Magazine magazine(size);
    std::vector<Item> items(200);
    std::vector<Item*> outside;
    for (Item& item : items) outside.push_back(&item);
    std::vector<Item*> held;  // The oracle.
    for (int step = 0; step < 400; ++step) {
      if (random.one_in(2) && !outside.empty()) {
        Item* item = outside.back();
        outside.pop_back();
        Item* surplus = magazine.give(*item);
        held.push_back(item);
        if (surplus == nullptr) continue;
        std::vector<Item*> returned = unchain(surplus);
        REQUIRE(returned.size() == size);
        std::reverse(returned.begin(), returned.end());
        REQUIRE(std::equal(returned.begin(), returned.end(), held.begin()));
        held.erase(held.begin(), held.begin() + size);
        outside.insert(outside.begin(), returned.begin(), returned.end());
      } else if (Item* item = magazine.take()) {
        REQUIRE(!held.empty());
        REQUIRE(item == held.back());
        held.pop_back();
        outside.insert(outside.begin(), item);
      } else {
        REQUIRE(held.empty());
        const auto count = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(random.below(size + 1), outside.size()));
        Item* chain = nullptr;
        for (std::uint32_t i = 0; i < count; ++i) {
          outside.back()->next = chain;
          chain = outside.back();
          held.push_back(chain);
          outside.pop_back();
        }
        magazine.refill(chain, count);
      }
      REQUIRE(held.size() <= 2 * size);
    }
    std::size_t drained = 0;
    magazine.drain([&](Item* chain) { drained += weft::base::chain_length(chain); });
    CHECK(drained == held.size());
    CHECK(magazine.take() == nullptr);
  }
}

TEST_SUITE_END();

}  // namespace
