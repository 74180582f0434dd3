// The main function of every test program.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/death_test.hpp"

int main(int argc, char** argv) {
  // Before doctest, which would take the signals that a death test is about.
  if (const char* place = std::getenv(weft::test::kDeathVariable)) {
    return weft::test::run_death_test(place);
  }
  return doctest::Context(argc, argv).run();
}
