// The main function of every test program.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/shake.hpp"
#include "tests/support/death_test.hpp"

namespace {

// Prints the seed at the start, so that the output has it however the program ends, and for the
// processes that death tests start.
void tell_shake_seed() {
  if (!weft::base::shake::kOn) return;
  const std::string seed = std::to_string(weft::base::shake::seed());
  setenv("WEFT_SHAKE_SEED", seed.c_str(), 1);
  (void)std::fprintf(stderr, "shaken with WEFT_SHAKE_SEED=%s\n", seed.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  tell_shake_seed();
  // Runs before doctest, which would handle the signals that death tests examine.
  if (const char* place = std::getenv(weft::test::kDeathVariable)) {
    return weft::test::run_death_test(place);
  }
  return doctest::Context(argc, argv).run();
}
