#include <weft/detail/first_use.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/fork.hpp>

#include "tests/support/child.hpp"

namespace {

using namespace weft::detail;

TEST_SUITE_BEGIN("base/first_use");

// Returns the distinct results of eight concurrent calls.
template <class Call>
auto results_of_threads(Call call) {
  std::vector<decltype(call())> results(8);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = call(); });
  for (std::thread& thread : threads) thread.join();
  return std::set(results.begin(), results.end());
}

constinit FirstUse<int> number;
int* find_number() {
  return &number.get([] { return std::make_unique<int>(7); });
}

TEST_CASE("threads that use an object for the first time get the same object") {
  const auto found = results_of_threads(&find_number);
  CHECK(found.size() == 1);
  CHECK(**found.begin() == 7);
}

TEST_CASE("the child of a fork makes another object, and its parent keeps the first object") {
  int* const first = find_number();
  *first = 8;
  CHECK(weft::test::status_of_child(
            [&] { return find_number() != first && *find_number() == 7 ? 0 : 1; }) == 0);
  CHECK(find_number() == first);
  CHECK(*find_number() == 8);
}

struct Category {
  std::string name = "a name that is too long for the string object itself";
};
constinit StaticObject<Category> category;

TEST_CASE("threads that use a static object for the first time get the same object") {
  const auto found = results_of_threads([] { return &category.get(); });
  CHECK(found.size() == 1);
  CHECK((*found.begin())->name == Category().name);
}

Atomic<int> computations{0};
int compute() noexcept { return 41 + static_cast<int>(computations.fetch_add(1, relaxed) >= 0); }

TEST_CASE("computed_once() returns the stored value when it is called again") {
  CHECK(computed_once<&compute>() == 42);
  CHECK(computed_once<&compute>() == 42);
  CHECK(computations.load(relaxed) == 1);
}

constinit Atomic<int> inner_steps{0};
constinit Atomic<int> outer_steps{0};
constinit Atomic<bool> is_outer_first{false};

const ForkHandlers inner_handlers(
    ForkHandlers::Locks::inner,
    [] { is_outer_first.store(outer_steps.load(relaxed) > inner_steps.load(relaxed), relaxed); },
    [] { inner_steps.fetch_add(1, relaxed); }, [] {});
const ForkHandlers outer_handlers(
    ForkHandlers::Locks::outer, [] { outer_steps.fetch_add(1, relaxed); }, [] {}, [] {});

TEST_CASE(
    "a fork takes outer locks before inner locks, and increases the child's fork count by one") {
  inner_steps.store(0, relaxed);
  outer_steps.store(0, relaxed);
  const std::uint32_t before = forks();
  CHECK(weft::test::status_of_child([&] { return forks() == before + 1 ? 0 : 1; }) == 0);
  CHECK(is_outer_first.load(relaxed));
  CHECK(inner_steps.load(relaxed) == 1);
  CHECK(forks() == before);
}

TEST_SUITE_END();

}  // namespace
