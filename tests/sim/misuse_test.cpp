// Tests that misuse inside a simulation ends the process, and that the report names the seed.
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/sim.hpp>

#include "tests/support/death_test.hpp"

TEST_SUITE_BEGIN("sim/misuse");

namespace sim = weft::sim;

DEATH_TEST_CASE("making a Runtime inside a simulation ends the process",
                "a Runtime was made inside a simulation") {
  sim::run([] { const weft::Runtime runtime; });
}

DEATH_TEST_CASE("the report of a misuse inside a simulation contains the seed", "WEFT_SIM_SEED=7") {
  sim::run(
      [] {
        weft::Mutex mutex;
        mutex.unlock();
      },
      {.first_seed = 7});
}

DEATH_TEST_CASE("the report of a misuse inside a simulation shows the notes made before the misuse",
                "before the mutex") {
  sim::run([] {
    sim::note("before the mutex");
    weft::Mutex mutex;
    mutex.unlock();
  });
}

TEST_SUITE_END();
