// Pools in several shards as one: pauses, sizes, ends, numbers.
#include <array>
#include <atomic>
#include <stdexcept>
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
using Gate = weft::test::Event;

TEST_SUITE_BEGIN("pool/shards_end");

FIBER_TEST_CASE("a pause holds in all shards, and ends in all") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 4, .queue_capacity = 8, .shards = 4});
  for (int round = 0; round < 5; ++round) {
    ran.store(0);
    pool.pause();
    CHECK(pool.is_paused());
    for (int i = 0; i < 12; ++i) CHECK(!pool.submit([&] { ran.fetch_add(1); }));
    CHECK(pool.try_submit([] {}) == Errc::full);
    pool.wait_paused();
    for (int i = 0; i < 20; ++i) this_fiber::yield();
    CHECK(ran.load() == 0);
    CHECK(pool.stats().queued == 12);
    pool.resume();
    CHECK(!pool.is_paused());
    pool.wait_idle();
    CHECK(ran.load() == 12);
  }
}

FIBER_TEST_CASE("a resize is divided, and lets blocked submitters in") {
  Concurrency gauge;
  Gate release;
  std::atomic<int> begun{0};
  FiberPool pool({.capacity = 2, .shards = 2});
  const auto task = [&] {
    const Concurrency::Stay stay(gauge);
    begun.fetch_add(1);
    release.wait();
  };
  for (int i = 0; i < 2; ++i) CHECK(!pool.submit(task));
  std::vector<JoinHandle<void>> blocked;
  for (int i = 0; i < 3; ++i) blocked.push_back(spawn([&] { CHECK(!pool.submit(task)); }));
  wait_until_true([&] { return pool.stats().blocked == 3; });
  pool.resize(5);
  CHECK(pool.capacity() == 5);
  for (auto& handle : blocked) handle.join();
  wait_until_true([&] { return begun.load() == 5; });
  CHECK(gauge.most() == 5);
  CHECK(pool.available() == 0);
  pool.resize(2);
  release.set();
  pool.wait_idle();
  gauge.forget_most();
  for (int i = 0; i < 20; ++i) CHECK(!pool.submit(task));
  pool.wait_idle();
  CHECK(gauge.most() <= 2);
}

FIBER_TEST_CASE("close tells who is blocked, and drains or drops in all shards") {
  for (const Close mode : {Close::drain, Close::discard}) {
    Gate release;
    std::atomic<int> ran{0};
    FiberPool pool({.capacity = 3, .queue_capacity = 6, .shards = 3});
    std::atomic<int> begun{0};
    for (int i = 0; i < 3; ++i) {
      CHECK(!pool.submit([&] {
        begun.fetch_add(1);
        release.wait();
      }));
    }
    wait_until_true([&] { return begun.load() == 3; });
    for (int i = 0; i < 6; ++i) CHECK(!pool.submit([&] { ran.fetch_add(1); }));
    auto blocked = spawn([&] { CHECK(pool.submit([] {}) == Errc::closed); });
    wait_until_true([&] { return pool.stats().blocked == 1; });
    pool.close(mode);
    CHECK(pool.is_closed());
    blocked.join();
    CHECK(pool.submit([] {}) == Errc::closed);
    CHECK(!pool.join_until(Deadline::past()));
    release.set();
    pool.join();
    CHECK(ran.load() == (mode == Close::drain ? 6 : 0));
    CHECK(pool.stats().cancelled == (mode == Close::drain ? 0 : 6));
    CHECK(pool.stats().live == 0);
    pool.reopen();
    CHECK(pool.run([] { return 1; }) == 1);
  }
}

FIBER_TEST_CASE("close(cancel) asks tasks in all shards to stop") {
  FiberPool pool({.capacity = 4, .shards = 4});
  std::atomic<int> begun{0};
  for (int i = 0; i < 4; ++i) {
    CHECK(!pool.submit([&](std::stop_token token) {
      begun.fetch_add(1);
      while (!token.stop_requested()) this_fiber::yield();
    }));
  }
  wait_until_true([&] { return begun.load() == 4; });
  pool.close(Close::cancel);
  pool.join();
  CHECK(pool.stats().completed == 4);
}

FIBER_TEST_CASE("a task cannot wait for its own pool, whichever shard it runs in") {
  FiberPool pool({.capacity = 3, .shards = 3});
  for (int i = 0; i < 3; ++i) {
    pool.run([&] {
      CHECK_THROWS_AS(pool.wait_idle(), std::system_error);
      CHECK_THROWS_AS(pool.wait_paused(), std::system_error);
      CHECK_THROWS_AS(pool.join(), std::system_error);
    });
  }
}

FIBER_TEST_CASE("wait_idle returns when all shards are quiet at one moment") {
  const int rounds = 100 / kSlowdown;
  FiberPool pool({.capacity = 4, .queue_capacity = 20, .shards = 4});
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> running{0};
    for (int i = 0; i < 8; ++i) {
      running.fetch_add(1);
      CHECK(!pool.submit([&] {
        // Hands the work on to another shard before it ends.
        running.fetch_add(1);
        CHECK(!pool.submit([&] {
          this_fiber::yield();
          running.fetch_sub(1);
        }));
        running.fetch_sub(1);
      }));
    }
    pool.wait_idle();
    CHECK(running.load() == 0);
  }
}

THREAD_TEST_CASE("plain threads submit to shards and wait for them") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 2, .shards = 2});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) CHECK(!pool.submit([&] { ran.fetch_add(1); }));
      CHECK(pool.run([] { return 1; }) == 1);
    });
  }
  for (auto& thread : threads) thread.join();
  pool.wait_idle();
  CHECK(ran.load() == 400);
}

// Who looks at all shards and finds no room stands in line then. Meanwhile the pool may have been
// closed and opened: that has made room, and nobody comes to tell it.
THREAD_TEST_CASE("nobody is left in the line while shards are closed and opened again") {
  FiberPool pool({.capacity = 3, .shards = 3});
  std::array<std::atomic<int>, 5> accepted{};
  std::atomic<bool> ends{false};
  std::vector<std::thread> submitters;
  for (auto& count : accepted) {
    submitters.emplace_back([&] {
      while (!ends.load()) {
        const std::error_code error = pool.submit([] { this_fiber::yield(); });
        if (!error) count.fetch_add(1);
        if (error && error != Errc::closed) FAIL_CHECK("refused: ", error.message());
      }
    });
  }
  const auto close_and_open = [&](Close mode) {
    pool.close(mode);
    pool.reopen();
  };
  const int times = kSanitized ? 60 : 300;
  for (int i = 0; i < times; ++i) {
    std::thread other(close_and_open, Close::discard);
    close_and_open(i % 2 == 0 ? Close::cancel : Close::drain);
    other.join();
    // Whoever was last has opened all of it, and everybody gets on.
    for (int shard = 0; shard < 3; ++shard) CHECK(!pool.submit([] {}));
    for (auto& count : accepted) {
      wait_until_true([&count, before = count.load()] { return count.load() > before; });
    }
    CHECK(!pool.stop_token().stop_requested());
  }
  ends.store(true);
  for (auto& thread : submitters) thread.join();
}

namespace {

struct Storm {
  FiberPool pool;
  Concurrency gauge;
  std::atomic<std::uint64_t> ran{0};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> refused{0};

  void submit_at_random(std::uint64_t stream) {
    Random random(stream);
    for (int n = 0; n < 60; ++n) {
      const bool nests = random.one_in(5);
      const auto task = [this, nests] {
        {
          const Concurrency::Stay stay(gauge);
          this_fiber::yield();
        }
        ran.fetch_add(1);
        if (nests) note(pool.submit([this] { ran.fetch_add(1); }));
      };
      const auto way = random.below(4);
      note(way == 0   ? pool.try_submit(task)
           : way == 1 ? pool.submit_for(10us, task)
                      : pool.submit(task));
    }
  }
  void note(std::error_code error) { (error ? refused : accepted).fetch_add(1); }
  void disturb(std::uint64_t stream) {
    Random random(stream);
    for (int n = 0; n < 30; ++n) {
      switch (random.below(5)) {
        case 0:
          pool.resize(3 + random.below(4));
          break;
        case 1:
          pool.pause();
          break;
        case 2:
          pool.resume();
          break;
        case 3:
          (void)pool.wait_idle_until(Deadline::past());
          break;
        default:
          CHECK(balanced(pool.stats()));
      }
      this_fiber::yield();
    }
    pool.resume();
  }
};

}  // namespace

FIBER_TEST_CASE("submits race with pauses, sizes and closes of shards, and the books balance") {
  const int rounds = kSanitized ? 4 : 20;
  for (int round = 0; round < rounds; ++round) {
    Storm storm{.pool = FiberPool({.capacity = 6,
                                   .queue_capacity = static_cast<std::size_t>(round % 5),
                                   .shards = 3,
                                   .balance = static_cast<Balance>(round % 2)})};
    const bool discards = round % 3 == 1;
    WaitGroup parties;
    parties.add(14);
    for (std::uint64_t i = 0; i < 12; ++i) {
      go([&, i] {
        storm.submit_at_random(i);
        parties.done();
      });
    }
    for (std::uint64_t i = 0; i < 2; ++i) {
      go([&, i] {
        storm.disturb(100 + i);
        storm.pool.resume();
        parties.done();
      });
    }
    for (int i = 0; i < 30; ++i) this_fiber::yield();
    if (round % 3 == 0) storm.pool.close(Close::drain);
    if (discards) storm.pool.close(Close::discard);
    parties.wait();
    storm.pool.close(Close::drain);
    storm.pool.join();
    const PoolStats stats = storm.pool.stats();
    CHECK(balanced(stats));
    CHECK(stats.busy + stats.queued + stats.lent + stats.blocked + stats.live == 0);
    CHECK(stats.submitted == storm.accepted.load());
    CHECK(stats.rejected == storm.refused.load());
    CHECK(stats.completed == storm.ran.load());
    CHECK(storm.gauge.most() <= 6);
  }
}

TEST_SUITE_END();
