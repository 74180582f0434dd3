// Tests invariants that are checked at run time.
#include <weft/detail/invariant.hpp>

#include "tests/support/death_test.hpp"

namespace {

TEST_SUITE_BEGIN("death/invariant");

#ifdef WEFT_INVARIANTS

DEATH_TEST_CASE("a broken invariant ends the process with the invariant's message",
                "an invariant of weft is broken: Ring I1: one is two") {
  WEFT_INVARIANT(1 == 2, "Ring I1: one is two");
}

DEATH_TEST_CASE("the report of a broken invariant names the source location",
                "death/invariant_test.cpp:") {
  WEFT_INVARIANT(false, "Ring I1: one is two");
}

#else

TEST_CASE("release builds do not evaluate invariants") {
  int evaluated = 0;
  WEFT_INVARIANT(++evaluated == 1, "Ring I1: one is two");
  CHECK(evaluated == 0);
}

#endif

TEST_SUITE_END();

}  // namespace
