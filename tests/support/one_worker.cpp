#include "tests/support/one_worker.hpp"

#include <doctest/doctest.h>

#include "base/shake.hpp"
#include "tests/support/skip.hpp"

namespace weft::test {

namespace {

#ifdef WEFT_TSAN_NO_SYNC
constexpr bool kFibersAreThreads = true;
#else
constexpr bool kFibersAreThreads = false;
#endif

}  // namespace

bool one_worker_keeps_order() {
  if (base::shake::kOn) skip("chance decides in which order one worker runs fibers");
  if (kFibersAreThreads) skip("its fibers would share data without a lock");
  return !base::shake::kOn && !kFibersAreThreads;
}

}  // namespace weft::test
