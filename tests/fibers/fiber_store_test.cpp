#include "fibers/fiber_store.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/random.hpp"

namespace {

using weft::fibers::Fiber;
using weft::fibers::FiberCache;
using weft::fibers::FiberState;
using weft::fibers::FiberStore;
using weft::fibers::kFibersPerChain;
using weft::fibers::kSlabBytes;
using weft::fibers::kSpareFibers;
using weft::fibers::Slab;

// Returns how many of the slab's pages have memory.
std::size_t resident_pages(Slab* slab) {
  unsigned char state[kSlabBytes / 4096] = {};
  if (mincore(slab, kSlabBytes, state) != 0) return 0;
  std::size_t count = 0;
  for (const unsigned char page : state) count += page & 1U;
  return count;
}

void trim_all(FiberStore& store) {
  while (store.trim(16)) {
  }
}

TEST_SUITE_BEGIN("fibers/fiber_store");

TEST_CASE("every fiber record identifies its slab, and every slab identifies its owner") {
  int owner = 0;
  FiberStore store(&owner, 100'000);
  FiberCache cache(store);
  for (int i = 0; i < 5'000; ++i) {
    Fiber* fiber = cache.take();
    REQUIRE(fiber != nullptr);
    REQUIRE(Slab::of(*fiber).owner == &owner);
    REQUIRE(fiber->state.load(weft::detail::relaxed) == FiberState::free);
  }
}

TEST_CASE("fiber records are distinct, and a traversal of the store reaches every record") {
  FiberStore store(nullptr, 100'000);
  FiberCache cache(store);
  std::set<const Fiber*> fibers;
  for (int i = 0; i < 3'000; ++i) REQUIRE(fibers.insert(cache.take()).second);
  std::size_t visited = 0;
  CHECK(store.for_each_until(weft::Deadline::never(), [&](const Fiber& fiber) {
    visited += fibers.count(&fiber);
    return true;
  }));
  CHECK(visited == fibers.size());
  visited = 0;
  CHECK(store.for_each_until(weft::Deadline::never(), [&](const Fiber&) { return ++visited > 0; }));
  CHECK(visited == store.bytes() / kSlabBytes * Slab::kFibers);
  visited = 0;
  CHECK(store.for_each_until(weft::Deadline::never(), [&](const Fiber&) { return ++visited < 7; }));
  CHECK(visited == 7);
}

TEST_CASE(
    "a fiber store exceeds its record limit only slightly when all records are taken and returned "
    "repeatedly") {
  constexpr std::size_t kLimit = 5'000;
  FiberStore store(nullptr, kLimit);
  for (int round = 0; round < 3; ++round) {
    FiberCache cache(store);
    std::vector<Fiber*> taken;
    while (Fiber* fiber = cache.take()) {
      taken.push_back(fiber);
      REQUIRE(taken.size() < 2 * kLimit);
    }
    CHECK(taken.size() >= kLimit);
    CHECK(taken.size() <= kLimit + kSpareFibers + kFibersPerChain);
    CHECK(cache.take() == nullptr);  // The cache stays empty.
    for (Fiber* fiber : taken) cache.give(*fiber);
    CHECK(cache.take() == taken.back());
    cache.give(*taken.back());
  }
}

TEST_CASE(
    "a fiber store hands out no further record when its last chain of records ends exactly at the "
    "limit") {
  FiberStore store(nullptr, 2 * Slab::kFibers - kSpareFibers);
  FiberCache cache(store);
  std::size_t taken = 0;
  while (cache.take() != nullptr) ++taken;
  CHECK(taken == 2 * Slab::kFibers);
}

TEST_CASE("the fiber store hands out full chains of records after a trim has sorted the records") {
  FiberStore store(nullptr, 100'000);
  std::vector<Fiber*> chains;
  while (chains.size() < 100) chains.push_back(store.take_chain());
  for (Fiber* chain : chains) store.give_chain(chain);
  trim_all(store);
  std::uint32_t longest = 0;
  for (Fiber*& chain : chains) {
    chain = store.take_chain();
    longest = std::max(longest, weft::base::chain_length(chain));
  }
  CHECK(longest == kFibersPerChain);
}

// Prevents huge pages while it lives: the kernel would make them in the background, and would then
// count the gaps between used pages as well.
class NoHugePages {
 public:
  NoHugePages() { CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0); }
  ~NoHugePages() { (void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0); }
  NoHugePages(const NoHugePages&) = delete;
  NoHugePages& operator=(const NoHugePages&) = delete;
};

TEST_CASE("a trim of the fiber store frees the memory of unused slabs only") {
  const NoHugePages no_huge_pages;
  FiberStore store(nullptr, 1'000'000);
  constexpr std::size_t kCount = 100'000;
  // Some chains are kept for the next burst, and each may keep two slabs.
  constexpr std::size_t kKeptSlabs = 40;
  std::vector<Fiber*> taken;
  std::set<Slab*> slabs;
  {
    FiberCache cache(store);
    for (std::size_t i = 0; i < kCount; ++i) {
      taken.push_back(cache.take());
      REQUIRE(taken.back() != nullptr);
      slabs.insert(&Slab::of(*taken.back()));
    }
    CHECK(store.bytes() >= slabs.size() * kSlabBytes);
    // One record stays in use, so its slab must stay.
    Fiber* kept = taken[kCount / 2];
    kept->wait_reason.store(7, weft::detail::relaxed);
    for (Fiber* fiber : taken) {
      if (fiber != kept) cache.give(*fiber);
    }
  }
  const std::size_t before = store.bytes();
  trim_all(store);
  const std::size_t after = store.bytes();
  CHECK(after <= kKeptSlabs * kSlabBytes);
  CHECK(after < before);
  std::size_t gone = 0;
  for (Slab* slab : slabs) gone += resident_pages(slab) == 0 ? 1U : 0U;
  CHECK(gone >= slabs.size() - kKeptSlabs);
  CHECK(taken[kCount / 2]->wait_reason.load(weft::detail::relaxed) == 7);
  CHECK(Slab::of(*taken[kCount / 2]).owner == nullptr);
  trim_all(store);
  CHECK(store.bytes() == after);
}

TEST_CASE("trimmed slabs are reused in their initial state") {
  int owner = 0;
  FiberStore store(&owner, 1'000'000);
  std::set<Fiber*> first;
  for (int round = 0; round < 4; ++round) {
    FiberCache cache(store);
    std::vector<Fiber*> taken;
    std::size_t seen_before = 0;
    for (int i = 0; i < 6'000; ++i) {
      Fiber* fiber = cache.take();
      REQUIRE(fiber != nullptr);
      REQUIRE(Slab::of(*fiber).owner == &owner);
      REQUIRE(fiber->state.load(weft::detail::relaxed) == FiberState::free);
      REQUIRE(fiber->stack.load(weft::detail::relaxed) == nullptr);
      if (round == 0) first.insert(fiber);
      seen_before += first.count(fiber);
      taken.push_back(fiber);
    }
    CHECK(seen_before >= 5'000);
    CHECK(std::set<Fiber*>(taken.begin(), taken.end()).size() == taken.size());
    for (Fiber* fiber : taken) cache.give(*fiber);
    if (round % 2 == 1) trim_all(store);
  }
}

TEST_CASE(
    "two threads never hold the same fiber record, even while another thread trims the store") {
  FiberStore store(nullptr, 1'000'000);
  std::vector<std::thread> threads;
  for (unsigned number = 1; number <= 4; ++number) {
    threads.emplace_back([&store, number] {
      weft::test::Random random(number);
      for (int round = 0; round < 3; ++round) {
        FiberCache cache(store);
        std::vector<Fiber*> held;
        for (int step = 0; step < 6'000; ++step) {
          if (!random.one_in(3)) {
            Fiber* fiber = cache.take();
            if (fiber == nullptr || fiber->wait_reason.load(weft::detail::relaxed) != 0) {
              FAIL_CHECK("a record that is in use, or none");
              return;
            }
            fiber->wait_reason.store(static_cast<std::uint8_t>(number), weft::detail::relaxed);
            held.push_back(fiber);
          } else if (!held.empty()) {
            held.back()->wait_reason.store(0, weft::detail::relaxed);
            cache.give(*held.back());
            held.pop_back();
          }
        }
        for (Fiber* fiber : held) {
          if (fiber->wait_reason.load(weft::detail::relaxed) != number) FAIL_CHECK("taken away");
          fiber->wait_reason.store(0, weft::detail::relaxed);
          cache.give(*fiber);
        }
        trim_all(store);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_SUITE_END();

}  // namespace
