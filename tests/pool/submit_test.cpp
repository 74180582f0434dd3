// Tests the results of submit functions (G4).
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

// Keeps `count` slots of a pool in use while it lives.
class Occupied {
 public:
  Occupied(FiberPool& pool, std::uint64_t count) : pool_(pool) {
    WaitGroup running;
    running.add(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      tasks_.push_back(pool_.async([this, &running] {
        running.done();
        release_.wait();
      }));
    }
    running.wait();
  }
  ~Occupied() {
    release();
    for (auto& task : tasks_) task.wait();
  }
  void release() { release_.set(); }

 private:
  FiberPool& pool_;
  Flag release_;
  std::vector<PoolTask<void>> tasks_;
};

void nothing() {}

}  // namespace

TEST_SUITE_BEGIN("pool/submit");

FIBER_TEST_CASE("the exception for a task that was refused or never started names the pool") {
  const auto text_of = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::system_error& refusal) {
      return refusal.what();
    }
    return "";
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  Flag event;
  FiberPool pool({.capacity = 1, .queue_capacity = 2, .name = "mail"});
  CHECK(pool.submit([&] { event.wait(); }));
  auto task = pool.async([] {});
  pool.close(Close::discard);
  CHECK(contains(text_of([&] { task.get(); }), "weft::PoolTask: the task never ran"));
  CHECK(contains(text_of([&] { pool.run([] {}); }), "weft::FiberPool 'mail': "));
  CHECK(contains(text_of([&] { (void)pool.async([] {}); }), "weft::FiberPool 'mail': "));
  CHECK(contains(text_of([&] { pool.go([] {}); }), "weft::FiberPool 'mail': "));
  CHECK(contains(text_of([&] { (void)pool.run_until({}, [] {}); }), "weft::FiberPool 'mail': "));
  event.set();
}

FIBER_TEST_CASE("a pool without a queue accepts exactly as many tasks as it has slots") {
  FiberPool pool({.capacity = 3, .on_full = OnFull::reject});
  const Occupied occupied(pool, 3);
  CHECK(pool.submit(nothing) == Errc::full);
  CHECK(pool.try_submit(nothing) == Errc::full);
  CHECK(pool.available_hint() == 0);
  CHECK(pool.stats().rejected == 2);
}

FIBER_TEST_CASE("a pool whose slots are all in use accepts as many tasks as its queue capacity") {
  for (const std::size_t places : {1u, 2u, 40u, 100u}) {
    std::atomic<std::size_t> ran{0};
    FiberPool pool({.capacity = 2, .queue_capacity = places, .on_full = OnFull::reject});
    {
      const Occupied occupied(pool, 2);
      for (std::size_t i = 0; i < places; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
      CHECK(pool.stats().queued == places);
      CHECK(pool.submit(nothing) == Errc::full);
      CHECK(ran.load() == 0);
    }
    pool.wait_idle();
    CHECK(ran.load() == places);
  }
}

FIBER_TEST_CASE("an unlimited queue accepts all tasks and runs them in order") {
  constexpr int kTasks = 5000;
  FiberPool pool({.capacity = 1, .queue_capacity = kUnlimited});
  std::vector<int> order;
  {
    const Occupied occupied(pool, 1);
    for (int i = 0; i < kTasks; ++i) CHECK(pool.submit([&order, i] { order.push_back(i); }));
    CHECK(pool.stats().queued == kTasks);
  }
  pool.wait_idle();
  CHECK(order.size() == kTasks);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

FIBER_TEST_CASE("blocked submitters of a pool are admitted in FIFO order") {
  for (const std::size_t places : {0u, 1u, 3u}) {
    constexpr std::size_t kBlocked = 30;
    FiberPool pool({.capacity = 1, .queue_capacity = places});
    std::vector<std::size_t> order;
    std::vector<JoinHandle<void>> submitters;
    {
      const Occupied occupied(pool, 1);
      for (std::size_t i = 0; i < kBlocked + places; ++i) {
        submitters.push_back(
            spawn([&, i] { CHECK(pool.submit([&order, i] { order.push_back(i); })); }));
        // Each caller waits in the list before the next caller comes.
        const std::size_t waiting = i + 1;
        wait_until_true([&] {
          const PoolStats stats = pool.stats();
          return stats.queued + stats.blocked == waiting;
        });
      }
      CHECK(pool.stats().blocked == kBlocked);
    }
    for (auto& submitter : submitters) submitter.join();
    pool.wait_idle();
    CHECK(order.size() == kBlocked + places);
    CHECK(std::is_sorted(order.begin(), order.end()));
  }
}

FIBER_TEST_CASE("no submitter overtakes a blocked submitter") {
  FiberPool pool({.capacity = 1, .queue_capacity = 1});
  Occupied occupied(pool, 1);
  CHECK(pool.submit(nothing));
  auto blocked = spawn([&] { CHECK(pool.submit(nothing)); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  CHECK(pool.try_submit(nothing) == Errc::full);
  occupied.release();
  blocked.join();
}

FIBER_TEST_CASE("submit_until() gives up at its deadline, and its task never runs") {
  std::atomic<bool> ran{false};
  FiberPool pool({.capacity = 1, .on_full = OnFull::reject});
  {
    const Occupied occupied(pool, 1);
    // The result is the same for every on_full.
    CHECK(pool.submit_until(1ms, [&] { ran.store(true); }) == Errc::timed_out);
    CHECK(pool.submit_until(Deadline::past(), [&] { ran.store(true); }) == Errc::timed_out);
    CHECK(pool.stats().blocked == 0);
  }
  CHECK(pool.submit_until(1h, nothing));
  pool.wait_idle();
  // If there is room, the pool does not read the clock.
  CHECK(pool.submit_until(Deadline::past(), nothing));
  pool.wait_idle();
  CHECK(!ran.load());
}

FIBER_TEST_CASE("no task is lost or runs twice when deadlines race with freed slots") {
  constexpr int kSubmitters = 16;
  const int tasks = 100 / static_cast<int>(kSlowdown);
  std::atomic<std::uint64_t> ran{0}, accepted{0}, late{0};
  WaitGroup submitters;
  FiberPool pool({.capacity = 2, .queue_capacity = 1});
  submitters.add(kSubmitters);
  for (int s = 0; s < kSubmitters; ++s) {
    go([&] {
      for (int i = 0; i < tasks; ++i) {
        const std::error_code error = pool.submit_until(20us, [&] {
          this_fiber::sleep_for(10us);
          ran.fetch_add(1);
        });
        if (!error) accepted.fetch_add(1);
        if (error == Errc::timed_out) late.fetch_add(1);
      }
      submitters.done();
    });
  }
  submitters.wait();
  pool.wait_idle();
  CHECK(ran.load() == accepted.load());
  CHECK(accepted.load() + late.load() == static_cast<std::uint64_t>(kSubmitters * tasks));
  const PoolStats stats = pool.stats();
  CHECK(stats.blocked == 0);
  CHECK(stats.rejected == late.load());
  CHECK(stats.completed == ran.load());
}

FIBER_TEST_CASE("at most max_blocked submitters wait for room") {
  FiberPool pool({.capacity = 1, .max_blocked = 2});
  Occupied occupied(pool, 1);
  auto first = spawn([&] { return pool.submit(nothing); });
  auto second = spawn([&] { return pool.submit(nothing); });
  wait_until_true([&] { return pool.stats().blocked == 2; });
  CHECK(pool.submit(nothing) == Errc::too_many_waiting);
  CHECK(pool.submit_until(1h, nothing) == Errc::too_many_waiting);
  CHECK(pool.try_submit(nothing) == Errc::full);
  occupied.release();
  CHECK(first.join());
  CHECK(second.join());
}

FIBER_TEST_CASE("a task that finds no room runs inside submit() when the pool uses caller_runs") {
  FiberPool pool({.capacity = 1, .on_full = OnFull::caller_runs});
  const Occupied occupied(pool, 1);
  const auto caller = this_fiber::id();
  std::uint64_t ran_in = 0;
  PoolStats during;
  CHECK(pool.submit([&] {
    ran_in = this_fiber::id();
    during = pool.stats();
  }));
  CHECK(ran_in == caller);
  CHECK(during.in_callers == 1);
  CHECK(balanced(during));
  CHECK(pool.async([] { return 5; }).get() == 5);
  CHECK(pool.run([] { return 6; }) == 6);
  const PoolStats stats = pool.stats();
  CHECK(stats.in_callers == 0);
  CHECK(stats.completed == 3);
  CHECK(stats.busy == 1);
}

FIBER_TEST_CASE("submit() refuses an empty callable without side effects") {
  FiberPool pool({.capacity = 1});
  const std::function<void()> empty;
  void (*null)() = nullptr;
  CHECK(pool.submit(empty) == Errc::empty_task);
  CHECK(pool.submit(empty).error == std::errc::invalid_argument);
  CHECK(pool.try_submit(null) == Errc::empty_task);
  CHECK(pool.submit_until(1ms, empty) == Errc::empty_task);
  CHECK_THROWS_AS((void)pool.async(empty), std::system_error);
  CHECK_THROWS_AS(pool.run(null), std::system_error);
  CHECK(pool.stats().submitted == 0);
  CHECK(pool.stats().live == 0);
  std::function<void()> full = [] {};
  CHECK(pool.submit(full));
  CHECK(pool.submit(&nothing));
  pool.wait_idle();
}

FIBER_TEST_CASE(
    "a pool runs move-only and large callables, and destroys them after they have run") {
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  auto small = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = small;
  auto unique = std::make_unique<int>(2);
  std::array<std::uint64_t, 50> large{};
  large[49] = 3;
  std::uint64_t sum = 0;
  CHECK(pool.submit([small = std::move(small), &sum] { sum += static_cast<unsigned>(*small); }));
  CHECK(pool.submit([unique = std::move(unique), &sum] { sum += static_cast<unsigned>(*unique); }));
  CHECK(pool.submit([large, &sum] { sum += large[49]; }));
  pool.wait_idle();
  CHECK(sum == 6);
  CHECK(watch.expired());
}

// Starts as many fibers as the limit allows, which are parked until the end.
class AllFibers {
 public:
  AllFibers() {
    try {
      for (;;) {
        go([this] {
          release_.wait();
          left_.done();
        });
        left_.add();
      }
    } catch (const std::system_error& error) {
      CHECK(error.code() == Errc::too_many_fibers);
    }
  }
  void release() {
    release_.done();
    left_.wait();
  }

 private:
  struct Gate : WaitGroup {
    Gate() { add(); }
  } release_;
  WaitGroup left_;
};

FIBER_TEST_CASE_WITH(
    "submit() returns an error and loses no task when no worker fiber can be spawned",
    {.options = {.max_fibers = 64}}) {
  std::atomic<std::uint64_t> accepted{0}, refused{0}, ran{0};
  FiberPool pool({.capacity = 2, .queue_capacity = 5, .idle_timeout = 1ms});
  const auto submit_one = [&] {
    const std::error_code error = pool.submit([&] { ran.fetch_add(1); });
    if (error) CHECK(error == Errc::too_many_fibers);
    (error ? refused : accepted).fetch_add(1);
  };
  std::vector<JoinHandle<void>> submitters;
  Flag all_taken;
  for (int s = 0; s < 8; ++s) {
    submitters.push_back(spawn([&] {
      all_taken.wait();
      for (int i = 0; i < 100; ++i) submit_one();
    }));
  }
  AllFibers all;
  all_taken.set();
  for (auto& submitter : submitters) submitter.join();
  CHECK(refused.load() + accepted.load() == 800);
  pool.wait_idle();
  CHECK(ran.load() == accepted.load());
  all.release();
  // The fibers have been released, and end a moment later.
  while (!pool.submit([&] { ran.fetch_add(1); })) this_fiber::yield();
  pool.wait_idle();
  CHECK(balanced(pool.stats()));
  CHECK(pool.stats().completed == ran.load());
}

TEST_CASE("submit() returns an error without a runtime, and the pool stays usable") {
  FiberPool pool({.capacity = 2, .queue_capacity = 2});
  CHECK(pool.submit(nothing) == Errc::no_runtime);
  CHECK(pool.stats().live == 0);
  CHECK(pool.stats().submitted == 0);
  {
    Runtime runtime;
    CHECK(pool.run([] { return 1; }) == 1);
    pool.close(Close::drain);
    pool.join();
  }
}

TEST_CASE("every accepted task runs even if a worker could not be started for the task") {
  const TestGuard guard("a worker that could not start");
  const int calls = 20'000 / static_cast<int>(kSlowdown);
  std::atomic<int> accepted{0}, ran{0};
  FiberPool pool({.capacity = 1, .queue_capacity = 5});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < calls; ++i) {
        // No runtime exists, so no worker ever starts. One of the threads reports this to its
        // caller, and runs tasks that other threads have submitted meanwhile.
        const std::error_code error = pool.submit([&] { ran.fetch_add(1); });
        CHECK((!error || error == Errc::no_runtime));
        if (!error) accepted.fetch_add(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  pool.wait_idle();
  CHECK(ran.load() == accepted.load());
  CHECK(balanced(pool.stats()));
  CHECK(pool.stats().live == 0);
}

FIBER_TEST_CASE(
    "a preallocated queue accepts as many tasks as a queue without preallocation, even after "
    "reopen()") {
  FiberPool pool({.capacity = 3, .prealloc = true, .queue_capacity = 100});
  for (int round = 0; round < 3; ++round) {
    pool.pause();
    int accepted = 0;
    while (pool.try_submit([] {})) ++accepted;
    CHECK(accepted == 103);
    pool.close(round == 1 ? Close::discard : Close::drain);
    pool.join();
    pool.reopen();
  }
  CHECK(pool.stats().completed == 206);
  CHECK(pool.stats().cancelled == 103);
}

TEST_SUITE_END();
