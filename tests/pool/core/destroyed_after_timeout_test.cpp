// Regression test: after its deadline had passed, a submitter accessed a pool that was closed,
// joined and destroyed meanwhile.
#include <chrono>
#include <memory>
#include <system_error>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/destroyed_after_timeout");

FIBER_TEST_CASE("a pool may be destroyed while calls to submit_until() time out") {
  const int rounds = 400 / test::kSlowdown;
  for (int round = 0; round < rounds; ++round) {
    Event hold;
    auto pool = std::make_unique<FiberPool>(PoolOptions{.capacity = 1});
    CHECK(pool->submit([&] { hold.wait(); }));
    std::vector<JoinHandle<void>> submitters;
    FiberPool* const of_submitters = pool.get();
    for (int i = 0; i < 4; ++i) {
      submitters.push_back(spawn([of_submitters, i] {
        const std::error_code error =
            of_submitters->submit_until(std::chrono::microseconds(20 * i), [] {});
        CHECK((!error || error == Errc::timed_out || error == Errc::closed));
      }));
    }
    const auto have_come = [&] {
      const PoolStats stats = pool->stats();  // One snapshot, so that no submitter counts twice.
      return stats.blocked + stats.rejected == 4;
    };
    while (!have_come()) this_fiber::yield();
    hold.set();
    pool->close(Close::discard);
    pool.reset();
    for (auto& submitter : submitters) submitter.join();
  }
}

TEST_SUITE_END();

}  // namespace
