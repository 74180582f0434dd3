// The fixture of tests that wait for time or depend on chance. They run in a simulation.
//
//   SIM_TEST_CASE("a sentence") { ... }
//
// The body is a fiber of a weft::sim::World, has `world` in scope, and runs once for each seed and
// bound of sim::Options::workers. All fibers that it spawns must end with it. A CHECK that fails
// ends the runs, with the seed and the previous events. WEFT_SIM_SEED repeats that seed alone.
//
//   SIM_TEST_CASE_WITH("a sentence", {.workers = {1}, .options = {.seeds = 100}}) { ... }
//
// The second form has its own SimSetup. sim::settle() replaces the wait until other fibers are
// parked, and weft::Clock is the clock to measure by. The rules of fiber_test.hpp about CHECK and
// INFO also apply here.
#pragma once

#include <cstdint>
#include <vector>
#include <weft/sim.hpp>

#include "tests/support/fiber_test.hpp"

namespace weft::test {

// Returns the number of seeds for each bound of workers: WEFT_TEST_SIM_SEEDS, or 5, or fewer in
// slow builds.
[[nodiscard]] std::uint64_t sim_seeds();

struct SimSetup {
  // The bounds of workers. 0: all fibers interleave, as on any number of workers.
  std::vector<unsigned> workers =
      kEmulated ? std::vector<unsigned>{2} : std::vector<unsigned>{1, 2, 0};
  sim::Options options = {.seeds = sim_seeds()};  // Its `workers` is set from the list.
};

using SimBody = void (*)(sim::World& world);
void run_sim_test(const char* sentence, SimBody body, const SimSetup& setup);

}  // namespace weft::test

#define WEFT_SIM_TEST_CASE_IMPL(name, sentence, ...)                                 \
  static void name(::weft::sim::World& world);                                       \
  DOCTEST_TEST_CASE(sentence) {                                                      \
    ::weft::test::run_sim_test(sentence, &name, ::weft::test::SimSetup __VA_ARGS__); \
  }                                                                                  \
  static void name([[maybe_unused]] ::weft::sim::World& world)

#define SIM_TEST_CASE_WITH(sentence, ...) \
  WEFT_SIM_TEST_CASE_IMPL(DOCTEST_ANONYMOUS(weft_sim_test_), sentence, __VA_ARGS__)
#define SIM_TEST_CASE(sentence) SIM_TEST_CASE_WITH(sentence, {})
