// Tests G11 and G12: fibers, tasks and plain threads make the same calls, and the counts are
// correct.
#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

// Submits tasks in all ways, in a random order. Counts accepted tasks and tasks that ran.
struct Load {
  FiberPool& pool;
  Concurrency gauge;
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> ran{0};

  void task(std::uint64_t yields) {
    const Concurrency::Stay stay(gauge);
    for (; yields > 0; --yields) this_fiber::yield();
    ran.fetch_add(1);
  }
  void note(std::error_code error) {
    if (!error) accepted.fetch_add(1);
  }
  void call_once(Random& random) {
    const std::uint64_t yields = random.below(3);
    const auto work = [this, yields] { task(yields); };
    switch (random.below(6)) {
      case 0:
        note(pool.submit(work));
        break;
      case 1:
        note(pool.try_submit(work));
        break;
      case 2:
        note(pool.submit_until(std::chrono::microseconds(random.below(100)), work));
        break;
      case 3:
        pool.run(work);
        accepted.fetch_add(1);
        break;
      case 4:
        pool.async(work).get();
        accepted.fetch_add(1);
        break;
      default:
        note(pool.submit([this, yields] {
          task(yields);
          Random own(yields);
          note(pool.submit([this] { task(1); }));
        }));
    }
  }
};

}  // namespace

TEST_SUITE_BEGIN("pool/callers");

THREAD_TEST_CASE(
    "pool statistics are consistent while fibers, tasks and threads use the pool concurrently") {
  const int calls = 1500 / static_cast<int>(kSlowdown);
  for (const std::size_t queue : {0u, 1u, 20u}) {
    FiberPool pool({.capacity = 4, .queue_capacity = queue, .idle_timeout = 2ms});
    Load load{pool, {}};
    const auto caller = [&](std::uint64_t stream) {
      Random random(stream);
      for (int i = 0; i < calls; ++i) {
        load.call_once(random);
        if (random.one_in(20)) CHECK(balanced(pool.stats()));
      }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 3; ++i) threads.emplace_back(caller, i);
    std::vector<JoinHandle<void>> fibers;
    for (std::uint64_t i = 3; i < 8; ++i) fibers.push_back(spawn([&, i] { caller(i); }));
    for (auto& thread : threads) thread.join();
    for (auto& fiber : fibers) fiber.join();
    pool.wait_idle();
    CHECK(load.ran.load() == load.accepted.load());
    CHECK(load.gauge.most() <= 4);
    const PoolStats stats = pool.stats();
    CHECK(balanced(stats));
    CHECK(stats.completed == load.ran.load());
    CHECK(stats.submitted == load.accepted.load());
    CHECK(stats.live <= 4);
    CHECK(stats.busy + stats.queued + stats.blocked + stats.released == 0);
    CHECK(stats.started - stats.retired == stats.live);
  }
}

THREAD_TEST_CASE("a plain thread can call every function of a pool") {
  Flag release;
  FiberPool pool({.capacity = 2, .queue_capacity = 1});
  CHECK(pool.run([] { return this_fiber::is_fiber(); }));
  std::vector<PoolTask<void>> holders;
  std::atomic<int> started{0};
  for (int i = 0; i < 3; ++i) {
    holders.push_back(pool.async([&] {
      ++started;
      release.wait();
    }));
  }
  CHECK(pool.try_submit([] {}) == Errc::full);
  CHECK(pool.submit_until(1ms, [] {}) == Errc::timed_out);
  CHECK(!holders[0].wait_until(1ms));
  CHECK(!pool.wait_idle_until(1ms));
  CHECK(!pool.wait_for_completed(10, 1ms));
  CHECK(!pool.join_until(1ms));
  // Two tasks have begun, and the pause waits for them.
  wait_until_true([&] { return started == 2; });
  pool.pause();
  CHECK(!pool.wait_paused_until(1ms));
  std::stop_source stop;
  (void)stop.request_stop();
  CHECK(pool.submit_until(stop.get_token(), [] {}) == Errc::cancelled);
  CHECK(!holders[0].wait_until(stop.get_token()));
  CHECK(!pool.wait_idle_until(stop.get_token()));
  CHECK(!pool.wait_for_completed(10, stop.get_token()));
  CHECK(!pool.join_until(stop.get_token()));
  CHECK(!pool.wait_paused_until(stop.get_token()));
  pool.resume();
  std::thread blocked([&] { CHECK(pool.submit([] {})); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  pool.resize(4);
  blocked.join();
  release.set();
  for (auto& holder : holders) holder.get();
  pool.wait_idle();
  pool.close(Close::discard);
  pool.join();
  pool.reopen();
  CHECK(pool.run([] { return 3; }) == 3);
}

FIBER_TEST_CASE("a pool's statistics count each task as blocked, queued, busy or completed") {
  Flag release;
  FiberPool pool({.capacity = 2, .queue_capacity = 3});
  CHECK(pool.available_hint() == 2);
  for (int i = 0; i < 5; ++i) CHECK(pool.submit([&] { release.wait(); }));
  auto blocked = spawn([&] { CHECK(pool.submit([] {})); });
  wait_until_true([&] { return pool.stats().blocked == 1 && pool.stats().busy == 2; });
  PoolStats stats = pool.stats();
  CHECK(stats.live == 2);
  CHECK(stats.idle == 0);
  CHECK(stats.queued == 3);
  CHECK(stats.submitted == 5);
  CHECK(stats.completed == 0);
  CHECK(pool.available_hint() == 0);
  release.set();
  blocked.join();
  pool.wait_idle();
  stats = pool.stats();
  CHECK(stats.submitted == 6);
  CHECK(stats.completed == 6);
  CHECK(stats.started == 2);
  CHECK(stats.idle == stats.live);
  CHECK(pool.available_hint() == 2);
}

TEST_SUITE_END();
