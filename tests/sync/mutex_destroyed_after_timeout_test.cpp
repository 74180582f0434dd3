// Regression test: if all waiters had given up, an unlock accessed the mutex after it had freed it.
// The next owner might have unlocked and destroyed the mutex by then.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::test::kSlowdown;

struct Shared {
  weft::Mutex mutex;
  int left = 0;  // Guarded by the mutex: callers that have not locked it yet.
};

// Gives up several times before it gets the mutex; the last caller destroys the mutex at once. The
// unlock() calls of other callers may not have returned yet.
void use(Shared* shared, weft::test::Random random) {
  while (!shared->mutex.try_lock_for(std::chrono::microseconds(random.below(3)))) {
  }
  if (random.one_in(2)) weft::this_fiber::yield();
  const bool is_last = --shared->left == 0;
  shared->mutex.unlock();
  if (is_last) delete shared;
}

TEST_SUITE_BEGIN("sync/mutex_destroyed_after_timeout");

THREAD_TEST_CASE("a mutex may be destroyed after its last unlock even if waiters have timed out") {
  const std::uint64_t rounds = 3'000 / kSlowdown;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    auto* shared = new Shared;
    shared->left = 4;
    std::vector<weft::JoinHandle<void>> fibers;
    for (std::uint64_t i = 0; i < 3; ++i) {
      fibers.push_back(weft::spawn([=] { use(shared, weft::test::Random(4 * round + i)); }));
    }
    use(shared, weft::test::Random(4 * round + 3));
  }
}

TEST_SUITE_END();

}  // namespace
