// Tests G1, G3 and G10: never more tasks than the capacity run, and never fewer without a reason.
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

namespace {

constexpr int kSubmitters = 64;
const int kTasksEach = 400 / kSlowdown;

// Runs a short task that sometimes lets other fibers run in between.
void linger(Concurrency& gauge, Random& random) {
  const Concurrency::Stay stay(gauge);
  for (auto times = random.below(3); times > 0; --times) this_fiber::yield();
}

// Submits tasks from many fibers at once; the pool accepts all of them.
void flood(FiberPool& pool, Concurrency& gauge, std::atomic<int>& ran) {
  WaitGroup submitters;
  submitters.add(kSubmitters);
  for (int i = 0; i < kSubmitters; ++i) {
    go([&, i] {
      Random random(static_cast<std::uint64_t>(i));
      for (int n = 0; n < kTasksEach; ++n) {
        const auto seed = random();
        const std::error_code error = pool.submit([&gauge, &ran, seed] {
          Random own(seed);
          linger(gauge, own);
          ran.fetch_add(1);
        });
        CHECK(!error);
        if (random.one_in(10)) CHECK(pool.stats().live <= 8);
      }
      submitters.done();
    });
  }
  submitters.wait();
}

}  // namespace

TEST_SUITE_BEGIN("pool/capacity");

FIBER_TEST_CASE(
    "the number of running tasks never exceeds the capacity when 64 submitters run concurrently") {
  for (const std::size_t queue : {std::size_t{0}, std::size_t{1}, std::size_t{50}, kUnlimited}) {
    for (const std::size_t capacity : {std::size_t{1}, std::size_t{4}}) {
      Concurrency gauge;
      std::atomic<int> ran{0};
      FiberPool pool({.capacity = capacity, .queue_capacity = queue, .idle_timeout = kNever});
      flood(pool, gauge, ran);
      pool.wait_idle();
      CHECK(ran.load() == kSubmitters * kTasksEach);
      CHECK(gauge.most() <= capacity);
      CHECK(pool.stats().started <= 8);
    }
  }
}

FIBER_TEST_CASE("a pool runs as many tasks at once as its capacity allows") {
  WaitGroup all_here, done;
  FiberPool pool({.capacity = 5, .queue_capacity = 100});
  all_here.add(5);
  done.add(20);
  for (int i = 0; i < 20; ++i) {
    CHECK(pool.submit([&, i] {
      if (i < 5) all_here.done();
      all_here.wait();  // Ends only if five run at once.
      done.done();
    }));
  }
  done.wait();
}

FIBER_TEST_CASE(
    "a pool starts workers, up to its capacity, for blocking tasks that follow a burst of short "
    "tasks") {
  constexpr int kTasks = 200;
  FiberPool pool({.capacity = kTasks, .queue_capacity = 10, .idle_timeout = kNever});
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 3 * kTasks; ++i) CHECK(pool.submit([] {}));
    WaitGroup all_here;
    all_here.add(kTasks);
    for (int i = 0; i < kTasks; ++i) {
      CHECK(pool.submit([&] {
        all_here.done();
        all_here.wait();
      }));
    }
    pool.wait_idle();
  }
  CHECK(pool.stats().started <= kTasks);
}

FIBER_TEST_CASE("a pool starts workers, up to its capacity, for tasks that wait for one another") {
  constexpr std::size_t kTasks = 500;
  for (const std::size_t queue : {std::size_t{0}, kTasks}) {
    WaitGroup all_here;
    all_here.add(kTasks);
    FiberPool pool({.capacity = kTasks, .queue_capacity = queue, .idle_timeout = kNever});
    for (std::size_t i = 0; i < kTasks; ++i) {
      CHECK(pool.submit([&] {
        all_here.done();
        all_here.wait();  // Ends only if all run at once.
      }));
    }
    pool.wait_idle();
    CHECK(pool.stats().started == kTasks);
  }
}

FIBER_TEST_CASE_WITH("a pool starts only a few workers for a burst of short tasks",
                     {.workers = {1}}) {
  constexpr int kTasks = 10'000;
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = kTasks});
  for (int i = 0; i < kTasks; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  CHECK(ran.load() == 0);  // No fiber has let a worker run so far.
  pool.wait_idle();
  CHECK(ran.load() == kTasks);
  CHECK(pool.stats().started < 100);
}

FIBER_TEST_CASE_WITH(
    "a pool that cannot start more workers runs all tasks with its existing workers",
    {.options = {.max_fibers = 64}}) {
  std::uint64_t accepted = 0;
  std::atomic<std::uint64_t> ran{0};
  WaitGroup all_submitted;  // Polls by this many fibers would take long.
  all_submitted.add();
  FiberPool pool({.capacity = 1000});
  for (int i = 0; i < 1000; ++i) {
    const std::error_code error = pool.submit([&] {
      all_submitted.wait();
      ran.fetch_add(1);
    });
    if (error) CHECK(error == Errc::too_many_fibers);
    if (!error) ++accepted;
    this_fiber::yield();
  }
  all_submitted.done();
  pool.wait_idle();
  CHECK(accepted < 1000);
  CHECK(ran.load() == accepted);
  CHECK(balanced(pool.stats()));
}

FIBER_TEST_CASE(
    "a task whose exception handler throws is counted as running until the task has ended") {
  Concurrency gauge;
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 3, .on_exception = [&](std::exception_ptr) {
                    const Concurrency::Stay stay(gauge);
                    this_fiber::yield();
                    throw std::runtime_error("from the handler, as it should be");
                  }});
  for (int i = 0; i < 50; ++i) {
    CHECK(pool.submit([&] {
      ran.fetch_add(1);
      throw 1;
    }));
  }
  pool.wait_idle();
  CHECK(ran.load() == 50);
  CHECK(gauge.most() <= 3);
  CHECK(pool.stats().failed == 50);
}

FIBER_TEST_CASE("a pool does not exceed its new capacity when resize() has reduced the capacity") {
  FiberPool pool({.capacity = 8, .queue_capacity = kUnlimited});
  for (int round = 0; round < 20; ++round) {
    pool.resize(8);
    Flag release;
    WaitGroup first;
    first.add(8);
    for (int i = 0; i < 8; ++i) {
      CHECK(pool.submit([&] {
        first.done();
        release.wait();
      }));
    }
    first.wait();
    Concurrency gauge;
    for (int i = 0; i < 40; ++i) {
      CHECK(pool.submit([&] {
        const Concurrency::Stay stay(gauge);
        this_fiber::yield();
      }));
    }
    pool.resize(2);
    CHECK(pool.available_hint() == 0);
    release.set();
    pool.wait_idle();
    CHECK(gauge.most() <= 2);
    CHECK(pool.stats().live <= 2);
  }
}

FIBER_TEST_CASE("idle workers beyond a reduced capacity retire at once") {
  WaitGroup all_here;
  FiberPool pool({.capacity = 8, .idle_timeout = kNever});
  all_here.add(8);
  for (int i = 0; i < 8; ++i) {
    CHECK(pool.submit([&] {
      all_here.done();
      all_here.wait();
    }));
  }
  pool.wait_idle();
  CHECK(pool.stats().live == 8);
  pool.resize(3);
  CHECK(pool.stats().live <= 3);
  CHECK(pool.capacity() == 3);
  CHECK(pool.available_hint() == 3);
}

FIBER_TEST_CASE(
    "increasing the capacity immediately starts queued tasks and admits blocked submitters") {
  Flag release;
  WaitGroup running, submitted;
  FiberPool pool({.capacity = 1, .queue_capacity = 1});
  running.add(4);
  submitted.add(4);
  for (int i = 0; i < 4; ++i) {
    go([&] {
      CHECK(pool.submit([&] {
        running.done();
        release.wait();
      }));
      submitted.done();
    });
  }
  wait_until_true([&] { return pool.stats().blocked == 2; });
  pool.resize(4);
  running.wait();
  submitted.wait();
  release.set();
  pool.wait_idle();
}

FIBER_TEST_CASE("an increased capacity admits blocked submitters even if the queue has to grow") {
  Flag release;
  std::atomic<int> ran{0};
  // After the queue has grown once, it has memory for 16 and 32 tasks.
  FiberPool pool({.capacity = 1, .queue_capacity = 48});
  const auto submit_one = [&] {
    CHECK(pool.submit([&] {
      release.wait();
      ran.fetch_add(1);
    }));
  };
  submit_one();
  wait_until_true([&] { return pool.stats().busy == 1; });
  for (int i = 0; i < 48; ++i) submit_one();
  std::vector<JoinHandle<void>> submitters;
  for (int i = 0; i < 6; ++i) submitters.push_back(spawn(submit_one));
  wait_until_true([&] { return pool.stats().blocked == 6; });
  pool.resize(5);
  CHECK(pool.stats().blocked == 2);
  release.set();
  for (auto& submitter : submitters) submitter.join();
  pool.wait_idle();
  CHECK(ran.load() == 55);
}

FIBER_TEST_CASE(
    "a worker that leaves the pool admits a blocked submitter even if the queue has to grow") {
  std::vector<Flag> release(8);
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 8, .queue_capacity = 52});
  for (Flag& each : release) CHECK(pool.submit([&] { each.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 8; });
  // After the queue has grown once, it has memory for 16 and 32 tasks.
  for (int i = 0; i < 48; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  pool.resize(1);
  auto blocked = spawn([&] { CHECK(pool.submit([&] { ran.fetch_add(1); })); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  // Four running tasks end, and no queued task starts; then 4 + 48 tasks are fewer than 1 + 52.
  for (int i = 0; i < 4; ++i) release[static_cast<std::size_t>(i)].set();
  wait_until_true([&] { return pool.stats().blocked == 0; });
  CHECK(pool.stats().busy == 4);
  CHECK(ran.load() == 0);
  for (Flag& each : release) each.set();
  blocked.join();
  pool.wait_idle();
  CHECK(ran.load() == 49);
}

FIBER_TEST_CASE(
    "many resizes during submissions never lose a task or exceed the largest capacity") {
  Concurrency gauge;
  std::atomic<int> ran{0};
  Flag over;
  FiberPool pool({.capacity = 8, .queue_capacity = 4});
  auto resizer = spawn([&] {
    Random random(99);
    while (!over.is_set()) {
      pool.resize(1 + random.below(8));
      const PoolStats stats = pool.stats();
      CHECK(stats.busy <= 8);
      CHECK(balanced(stats));
      this_fiber::yield();
    }
  });
  flood(pool, gauge, ran);
  over.set();
  resizer.join();
  pool.wait_idle();
  CHECK(ran.load() == kSubmitters * kTasksEach);
  CHECK(gauge.most() <= 8);
}

FIBER_TEST_CASE("a pool refuses no task while a slot is free, even while workers retire") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 2, .on_full = OnFull::reject, .idle_timeout = 50us});
  const int rounds = 2000 / static_cast<int>(kSlowdown);
  for (int i = 0; i < rounds; ++i) {
    // run() returns only after the slot is free again, so two concurrent callers always fit.
    CHECK(pool.run([&] { return ran.fetch_add(1); }) == i);
    if (i % 50 == 0) this_fiber::sleep_for(100us);
  }
  CHECK(pool.stats().rejected == 0);
}

FIBER_TEST_CASE("the slot of a task is free again when a wait for the task returns") {
  FiberPool pool({.capacity = 1, .on_full = OnFull::reject});
  for (int i = 0; i < 1000; ++i) {
    auto task = pool.async([i] { return i; });
    CHECK(task.get() == i);
    CHECK(pool.available_hint() == 1);
    CHECK(pool.stats().completed == static_cast<std::uint64_t>(i) + 1);
  }
}

TEST_SUITE_END();
