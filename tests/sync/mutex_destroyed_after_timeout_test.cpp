// An unlock that found only waiters who had given up touched the mutex after it had made it free,
// when the next owner might have unlocked and destroyed it.
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
  int left = 0;  // Under the mutex: callers that have not had it yet.
};

// Gives up some times before it gets the mutex; the last one destroys it at once. The others'
// unlocks may be still on their way out.
void use(Shared* shared, weft::test::Random random) {
  while (!shared->mutex.try_lock_for(std::chrono::microseconds(random.below(3)))) {
  }
  if (random.one_in(2)) weft::this_fiber::yield();
  const bool is_last = --shared->left == 0;
  shared->mutex.unlock();
  if (is_last) delete shared;
}

TEST_SUITE_BEGIN("sync/mutex_destroyed_after_timeout");

THREAD_TEST_CASE("a mutex may be destroyed after the last unlock when waiters have given up") {
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
