// Fibers of a warm worker cost no allocation.
#include <string>
#include <vector>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/cost/allocations.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using weft::test::allocations_of;

constexpr int kFibers = 200;

#define COST_TEST_CASE(sentence) FIBER_TEST_CASE_WITH(sentence, {.workers = {1}})

TEST_SUITE_BEGIN("cost/spawn");

COST_TEST_CASE("a fiber that runs alone allocates nothing") {
  CHECK(allocations_of([] {
          weft::WaitGroup group;
          for (int i = 0; i < kFibers; ++i) group.go([] {});
          group.wait();
        }) == 0);
}

COST_TEST_CASE("a joined fiber allocates nothing, in place or not") {
  CHECK(allocations_of([] {
          for (int i = 0; i < kFibers; ++i) CHECK(weft::spawn([i] { return i; }).join() == i);
        }) == 0);
  std::vector<weft::JoinHandle<void>> handles;
  handles.reserve(kFibers);
  CHECK(allocations_of([&] {
          for (int i = 0; i < kFibers; ++i) handles.push_back(weft::spawn([] {}));
          handles.clear();
        }) == 0);
}

COST_TEST_CASE("a large result takes one allocation") {
  struct Large {
    char bytes[200];
  };
  CHECK(allocations_of([] { (void)weft::spawn([] { return Large{}; }).join(); }) == 1);
}

TEST_SUITE_END();

}  // namespace
