// Pools in several shards: PoolOptions::shards.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>
#include <weft/channel.hpp>
#include <weft/function_pool.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>
#include <weft/task_group.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Event;

namespace {

// Tasks that take slots until they are told to give them back.
class Holders {
 public:
  Holders(FiberPool& pool, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      gates_.push_back(std::make_shared<Gate>());
      // A task may still look at its gate when this object is gone.
      CHECK(!pool.try_submit([this, gate = gates_.back()] {
        begun_.fetch_add(1);
        gate->wait();
      }));
    }
    wait_until_true([&] { return begun_.load() == count; });
  }
  ~Holders() {
    for (auto& gate : gates_) gate->set();
  }
  void release(std::size_t i) { gates_[i]->set(); }

 private:
  std::vector<std::shared_ptr<Gate>> gates_;
  std::atomic<std::size_t> begun_{0};
};

}  // namespace

TEST_SUITE_BEGIN("pool/shards");

FIBER_TEST_CASE("many submitters never get more than the capacity of all shards running") {
  constexpr int kSubmitters = 32;
  constexpr int kEach = 100 / kSlowdown;
  for (const std::size_t queue : {std::size_t{0}, std::size_t{5}, kUnlimited}) {
    for (const Balance balance : {Balance::round_robin, Balance::least_tasks}) {
      Concurrency gauge;
      std::atomic<int> ran{0};
      FiberPool pool({.capacity = 5, .queue_capacity = queue, .shards = 3, .balance = balance});
      WaitGroup submitters;
      submitters.add(kSubmitters);
      for (int i = 0; i < kSubmitters; ++i) {
        go([&, i] {
          Random random(static_cast<std::uint64_t>(i));
          for (int n = 0; n < kEach; ++n) {
            const bool yields = random.one_in(2);
            CHECK(!pool.submit([&, yields] {
              const Concurrency::Stay stay(gauge);
              if (yields) this_fiber::yield();
              ran.fetch_add(1);
            }));
          }
          submitters.done();
        });
      }
      submitters.wait();
      pool.wait_idle();
      CHECK(ran.load() == kSubmitters * kEach);
      CHECK(gauge.most() <= 5);
      const PoolStats stats = pool.stats();
      CHECK(balanced(stats));
      CHECK(stats.completed == kSubmitters * kEach);
      CHECK(stats.live <= 5);
    }
  }
}

FIBER_TEST_CASE("nobody is refused while any shard has a slot or a place") {
  for (const Balance balance : {Balance::round_robin, Balance::least_tasks}) {
    FiberPool pool({.capacity = 7, .queue_capacity = 5, .shards = 3, .balance = balance});
    CHECK(pool.available() == 7);
    Holders holders(pool, 7);
    CHECK(pool.available() == 0);
    std::atomic<int> ran{0};
    for (int i = 0; i < 5; ++i) CHECK(!pool.try_submit([&] { ran.fetch_add(1); }));
    CHECK(pool.try_submit([] {}) == Errc::full);
    CHECK(pool.submit_until(Deadline::past(), [] {}) == Errc::timed_out);
    CHECK(pool.stats().rejected == 2);
    for (std::size_t i = 0; i < 7; ++i) holders.release(i);
    pool.wait_idle();
    CHECK(ran.load() == 5);
  }
}

FIBER_TEST_CASE("a blocked submitter goes on as soon as any shard has room") {
  for (std::size_t released = 0; released < 4; ++released) {
    FiberPool pool({.capacity = 4, .shards = 4});
    Holders holders(pool, 4);
    auto blocked = spawn([&] { CHECK(!pool.submit([] {})); });
    wait_until_true([&] { return pool.stats().blocked == 1; });
    holders.release(released);
    blocked.join();
  }
}

FIBER_TEST_CASE("blocked submitters are served first come, first served, by all shards") {
  FiberPool pool({.capacity = 3, .max_blocked = 6, .shards = 3});
  auto holders = std::make_unique<Holders>(pool, 3);
  std::vector<std::size_t> order;
  std::vector<JoinHandle<void>> waiting;
  std::vector<std::unique_ptr<Gate>> begun, gates;
  for (std::size_t i = 0; i < 6; ++i) {
    begun.push_back(std::make_unique<Gate>());
    gates.push_back(std::make_unique<Gate>());
  }
  for (std::size_t i = 0; i < 6; ++i) {
    waiting.push_back(spawn([&, i] {
      CHECK(!pool.submit([&, i] {
        begun[i]->set();
        gates[i]->wait();
      }));
    }));
    wait_until_true([&] { return pool.stats().blocked == i + 1; });
  }
  CHECK(pool.submit([] {}) == Errc::too_many_waiting);
  CHECK(pool.try_submit([] {}) == Errc::full);
  const std::size_t freed[] = {2, 0, 1};
  for (std::size_t i = 0; i < 6; ++i) {
    // One slot at a time becomes free, and the next in line gets it.
    i < 3 ? holders->release(freed[i]) : gates[(i * 2) % 3]->set();
    begun[i]->wait();
    for (std::size_t later = i + 1; later < 6; ++later) CHECK(!begun[later]->is_set());
  }
  for (auto& gate : gates) gate->set();
  for (auto& handle : waiting) handle.join();
  pool.wait_idle();
}

FIBER_TEST_CASE("who waits in the line can give up, by time or by a stop request") {
  FiberPool pool({.capacity = 2, .shards = 2});
  Holders holders(pool, 2);
  CHECK(pool.submit_for(1us, [] { CHECK(false); }) == Errc::timed_out);
  std::stop_source stop;
  auto stopped = spawn(
      [&] { CHECK(pool.submit_until(stop.get_token(), [] { CHECK(false); }) == Errc::cancelled); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  stop.request_stop();
  stopped.join();
  CHECK(pool.stats().blocked == 0);
  holders.release(0);
  CHECK(pool.run([] { return 1; }) == 1);
}

FIBER_TEST_CASE("tasks that are queued in one shard are run by another that has free slots") {
  for (const std::size_t shards : {2u, 4u}) {
    std::atomic<int> ran{0};
    FiberPool pool({.capacity = shards, .queue_capacity = 100, .shards = shards});
    Holders holders(pool, shards - 1);
    for (int i = 0; i < 40; ++i) CHECK(!pool.submit([&] { ran.fetch_add(1); }));
    wait_until_true([&] { return ran.load() == 40; });  // With one slot in one shard.
    CHECK(pool.stats().busy == shards - 1);
  }
}

FIBER_TEST_CASE("a slot that is lent serves what is queued in another shard") {
  FiberPool pool({.capacity = 2, .queue_capacity = 4, .shards = 2});
  for (int round = 0; round < 10; ++round) {
    Gate begun, finished;
    CHECK(!pool.submit([&] {
      begun.set();
      finished.wait();  // The other shard's slot is taken until the awaited task has run.
    }));
    begun.wait();
    pool.run([&] {
      auto one = pool.async([] {});
      auto two = pool.async([] {});  // One of the two is queued behind the other slot.
      one.wait();
      two.wait();
    });
    finished.set();
    pool.wait_idle();
  }
}

FIBER_TEST_CASE("a tree of tasks that wait for each other ends, in shards of one slot, too") {
  for (const std::size_t queue : {std::size_t{0}, std::size_t{3}, kUnlimited}) {
    Concurrency gauge;
    FiberPool pool({.capacity = 3, .queue_capacity = queue, .shards = 3});
    CHECK(pool.run([&] { return fibonacci(pool, gauge, kSanitized ? 7 : 10); }) ==
          (kSanitized ? 13 : 55));
    pool.wait_idle();
    CHECK(gauge.most() <= 3);
    CHECK(pool.stats().lent == 0);
    CHECK(balanced(pool.stats()));
  }
}

FIBER_TEST_CASE("tasks of one key run one after the other, whatever the shards") {
  std::vector<int> order;
  FiberPool pool({.capacity = 4, .queue_capacity = 50, .shards = 4});
  for (int i = 0; i < 40; ++i) {
    CHECK(!pool.submit({.key = 7}, [&, i] {
      this_fiber::yield();
      order.push_back(i);
    }));
    CHECK(!pool.submit([] {}));
  }
  pool.wait_idle();
  CHECK(order.size() == 40);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

FIBER_TEST_CASE("a task that is over before it could begin is refused by shards, too") {
  std::stop_source stop;
  stop.request_stop();
  FiberPool pool({.capacity = 2, .shards = 2});
  CHECK(pool.submit({.stop = stop.get_token()}, [] { CHECK(false); }) == Errc::cancelled);
  CHECK(pool.submit({.deadline = Deadline::past()}, [] { CHECK(false); }) == Errc::timed_out);
  CHECK(pool.stats().rejected == 2);
}

FIBER_TEST_CASE("what to do when all shards are full is done once, by the pool") {
  std::atomic<int> ran{0};
  {
    FiberPool pool({.capacity = 2, .on_full = OnFull::caller_runs, .shards = 2});
    Holders holders(pool, 2);
    CHECK(!pool.submit([&] { ran.fetch_add(1); }));
    CHECK(ran.load() == 1);
  }
  {
    FiberPool pool(
        {.capacity = 2, .queue_capacity = 2, .on_full = OnFull::drop_oldest, .shards = 2});
    Holders holders(pool, 2);
    for (int i = 0; i < 10; ++i) CHECK(!pool.submit([&] { ran.fetch_add(10); }));
    CHECK(pool.stats().cancelled == 8);
  }
  CHECK(ran.load() == 21);
}

FIBER_TEST_CASE("a task that is too heavy for what is free in each shard is refused at once") {
  for (const OnFull on_full : {OnFull::reject, OnFull::caller_runs, OnFull::drop_oldest}) {
    FiberPool pool({.capacity = 4, .queue_capacity = 2, .on_full = on_full, .shards = 2});
    // A place is left in each shard, and none has two.
    Holders holders(pool, 4);
    CHECK(pool.try_submit({.weight = 2}, [] { CHECK(false); }) == Errc::full);
    bool ran = false;
    const std::error_code error = pool.submit({.weight = 2}, [&] { ran = true; });
    CHECK(error == (on_full == OnFull::caller_runs ? std::error_code() : Errc::full));
    CHECK(ran == (on_full == OnFull::caller_runs));
    CHECK(!pool.try_submit({.weight = 1}, [] {}));
  }
}

FIBER_TEST_CASE("a task heavier than the smallest shard is refused, whosever turn it is") {
  FiberPool pool({.capacity = 5, .queue_capacity = 5, .shards = 2});
  for (int i = 0; i < 4; ++i) {
    CHECK(pool.submit({.weight = 3}, [] { CHECK(false); }) == Errc::too_heavy);
    CHECK(pool.submit({.key = i, .weight = 3}, [] { CHECK(false); }) == Errc::too_heavy);
    CHECK(!pool.submit({.weight = 2}, [] {}));
  }
  pool.resize(6);
  CHECK(pool.run({.weight = 3}, [] { return 1; }) == 1);
}

FIBER_TEST_CASE("who is blocked in a shard with a heavy task of a key keeps light ones out") {
  FiberPool pool({.capacity = 4, .shards = 2});
  Holders holders(pool, 3);
  Gate gate;
  std::vector<JoinHandle<void>> blocked;
  // Until there is one for the shard that has a slot left.
  for (int key = 0; key < 16; ++key) {
    blocked.push_back(
        spawn([&, key] { CHECK(!pool.submit({.key = key, .weight = 2}, [&] { gate.wait(); })); }));
  }
  wait_until_true([&] { return pool.stats().blocked == blocked.size(); });
  CHECK(pool.available() == 1);
  CHECK(pool.try_submit([] { CHECK(false); }) == Errc::full);
  for (std::size_t i = 0; i < 3; ++i) holders.release(i);
  gate.set();
  for (auto& handle : blocked) handle.join();
  pool.wait_idle();
  CHECK(pool.stats().completed == 3 + 16);
}

FIBER_TEST_CASE("many tasks in one call go to all shards") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 4, .queue_capacity = 6, .on_full = OnFull::reject, .shards = 4});
  pool.pause();
  const std::vector<std::function<void()>> tasks(15, [&] { ran.fetch_add(1); });
  CHECK(pool.submit_bulk(tasks) == 10);
  pool.resume();
  pool.wait_idle();
  CHECK(ran.load() == 10);
}

FIBER_TEST_CASE("groups, function pools and selects work on shards") {
  FiberPool pool({.capacity = 2, .shards = 2});
  ResultGroup<int> group(pool);
  for (int i = 0; i < 6; ++i) group.spawn([i] { return i; });
  CHECK(group.join() == std::vector<int>{0, 1, 2, 3, 4, 5});
  FunctionPool<int, int> twice([](int n) { return 2 * n; }, {.capacity = 2, .shards = 2});
  CHECK(twice.process(21) == 42);
  auto task = pool.async([] {});
  CHECK(select(on_done(task)) == 0);
}

FIBER_TEST_CASE("options that cannot be had with shards are refused by name") {
  FiberPool pool({.capacity = 2, .shards = 2});
  CHECK(refused({.shards = 0}, "shards"));
  CHECK(refused({.capacity = 100, .shards = 65}, "shards"));
  CHECK(refused({.capacity = 2, .shards = 3}, "capacity"));
  CHECK(refused({.capacity = 4, .queue_capacity = 1, .on_full = OnFull::drop_oldest, .shards = 2},
                "queue_capacity"));
  CHECK(refused({.capacity = 1, .parent = &pool}, "parent"));
  CHECK_THROWS_AS(pool.resize(1), std::invalid_argument);
  CHECK(pool.capacity() == 2);
}

TEST_SUITE_END();
