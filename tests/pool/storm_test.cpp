// Tests every call that can race with a submit. Finally, each accepted task has run once or counts
// as cancelled, no refused task has run, and the pool has leaked nothing.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kSubmitters = 64;
const std::size_t kTasksEach = 100 / kSlowdown;
constexpr std::size_t kMostSlots = 8;

// Submits tasks to a pool, and records the outcome of each.
class Storm {
  auto task(std::size_t index) {
    return [this, index] {
      if (inside_) inside_(index);
      const Concurrency::Stay stay(gauge_);
      fates_[index].runs.fetch_add(1);
      for (std::size_t times = index % 3; times > 0; --times) this_fiber::yield();
      if (index % 7 == 0) throw index;
    };
  }

 public:
  // Each task calls `inside` with its number.
  Storm(Runtime& runtime, PoolOptions options, std::function<void(std::size_t)> inside = {})
      : runtime_(runtime),
        fibers_before_(runtime.stats().live),
        inside_(std::move(inside)),
        pool_(std::move(options)) {}

  [[nodiscard]] FiberPool& pool() { return pool_; }
  [[nodiscard]] Concurrency& gauge() { return gauge_; }

  // Lets 64 fibers repeatedly call `offer(pool, task, random)`, which returns its error code, and
  // calls `meanwhile(random)` until they have finished.
  template <class Offer, class Meanwhile>
  void blow(Offer offer, Meanwhile meanwhile) {
    WaitGroup submitters;
    submitters.add(kSubmitters);
    for (std::size_t s = 0; s < kSubmitters; ++s) {
      go([this, s, &submitters, offer] {
        Random random(s);
        for (std::size_t n = 0; n < kTasksEach; ++n) {
          const std::size_t index = s * kTasksEach + n;
          const std::error_code error = offer(pool_, task(index), random);
          fates_[index].accepted = !error;
          if (error) refused_.fetch_add(1);
        }
        submitters.done();
      });
    }
    Random random(kSubmitters);
    while (!submitters.wait_until(Deadline::past())) {
      meanwhile(random);
      this_fiber::yield();
    }
  }

  // Ends the pool, and checks its counts. If `may_cancel` is true, tasks may have been dropped.
  void check_books(bool may_cancel) {
    pool_.close(Close::drain);
    pool_.join();
    const PoolStats stats = pool_.stats();
    std::uint64_t accepted = 0, ran = 0, wrong = 0;
    for (const Fate& fate : fates_) {
      accepted += fate.accepted ? 1 : 0;
      ran += fate.runs.load();
      wrong += fate.runs.load() > (fate.accepted ? 1 : 0) ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(balanced(stats));
    CHECK(stats.submitted == accepted);
    CHECK(stats.rejected == refused_.load());
    CHECK(stats.completed + stats.failed == ran);
    CHECK(stats.cancelled == accepted - ran);
    if (!may_cancel) CHECK(stats.cancelled == 0);
    CHECK(stats.live + stats.blocked + stats.released + stats.in_callers == 0);
    CHECK(stats.started == stats.retired);
    CHECK(gauge_.most() <= kMostSlots);
    // The last worker may not have left its stack yet.
    wait_until_true([&] { return runtime_.stats().live == fibers_before_; });
  }

 private:
  struct Fate {
    std::atomic<std::uint64_t> runs{0};
    bool accepted = false;
  };

  Runtime& runtime_;
  const std::uint64_t fibers_before_;
  const std::function<void(std::size_t)> inside_;
  Concurrency gauge_;
  std::vector<Fate> fates_{kSubmitters * kTasksEach};
  std::atomic<std::uint64_t> refused_{0};
  FiberPool pool_;
};

// Returns the options of all storms: exceptions are normal, and workers retire all the time.
PoolOptions stormy(PoolOptions options) {
  options.idle_timeout = 1ms;
  options.on_exception = [](std::exception_ptr) { this_fiber::yield(); };
  return options;
}

// Submits `task` in a way that it chooses at random, and returns the result.
template <class Task>
std::error_code offer_in_some_way(FiberPool& pool, Task task, Random& random) {
  try {
    switch (random.below(5)) {
      case 0:
        return pool.try_submit(std::move(task));
      case 1:
        return pool.submit_until(std::chrono::microseconds(random.below(30)), std::move(task));
      case 2:
        pool.run(task);
        return {};
      case 3:
        (void)pool.async(std::move(task));
        return {};
      default:
        return pool.submit(std::move(task));
    }
  } catch (const std::system_error& error) {
    // The pool accepted the run() and then dropped it.
    if (error.code() == std::errc::operation_canceled) return {};
    return error.code();
  } catch (std::size_t) {
    return {};  // The task threw this number.
  }
}
constexpr auto kOfferInSomeWay = [](FiberPool& pool, auto task, Random& random) {
  return offer_in_some_way(pool, std::move(task), random);
};
constexpr auto kSubmit = [](FiberPool& pool, auto task, Random&) {
  return pool.submit(std::move(task));
};

// Makes calls that a running pool must support: resizes, pauses, reads of statistics.
void disturb(FiberPool& pool, Random& random) {
  switch (random.below(4)) {
    case 0:
      return pool.resize(1 + random.below(kMostSlots));
    case 1:
      pool.pause();
      if (random.one_in(2)) this_fiber::yield();
      return pool.resume();
    default:
      const PoolStats stats = pool.stats();
      CHECK(balanced(stats));
      CHECK(stats.busy <= kMostSlots);
      CHECK(pool.available_hint() <= kMostSlots);
  }
}

}  // namespace

TEST_SUITE_BEGIN("pool/storm");

FIBER_TEST_CASE("concurrent resizes and pauses lose no task for any value of on_full") {
  for (const OnFull when_full : {OnFull::block, OnFull::reject, OnFull::drop_oldest}) {
    for (const std::size_t queue_capacity : {std::size_t{0}, std::size_t{1}, std::size_t{40}}) {
      if (when_full == OnFull::drop_oldest && queue_capacity == 0) continue;
      Storm storm(runtime, stormy({.capacity = 4,
                                   .queue_capacity = queue_capacity,
                                   .on_full = when_full,
                                   .max_blocked = when_full == OnFull::reject ? kUnlimited : 30}));
      storm.blow(kOfferInSomeWay, [&](Random& random) { disturb(storm.pool(), random); });
      storm.check_books(when_full == OnFull::drop_oldest);
    }
  }
}

FIBER_TEST_CASE("a pool of capacity 1, with a queue capacity of 0 or 1, serves 64 submitters") {
  for (const std::size_t queue_capacity : {std::size_t{0}, std::size_t{1}}) {
    Storm storm(runtime, stormy({.capacity = 1, .queue_capacity = queue_capacity}));
    storm.blow(kSubmit, [&](Random&) { CHECK(storm.pool().stats().live <= 1); });
    CHECK(storm.gauge().most() == 1);
    storm.check_books(false);
  }
}

FIBER_TEST_CASE(
    "concurrent closes and reopens by fibers, threads and tasks neither lose nor duplicate a "
    "task") {
  constexpr Close kModes[] = {Close::drain, Close::discard, Close::cancel};
  FiberPool* of_tasks = nullptr;
  Storm storm(runtime, stormy({.capacity = 3, .queue_capacity = 5}), [&](std::size_t index) {
    if (index % 20 != 0) return;
    of_tasks->close(kModes[index % 3]);
    of_tasks->reopen();
  });
  of_tasks = &storm.pool();
  std::atomic<bool> over{false};
  std::thread thread([&] {
    Random random(1000);
    while (!over.load()) {
      storm.pool().close(kModes[random.below(3)]);
      storm.pool().reopen();
      std::this_thread::yield();
    }
  });
  storm.blow(kOfferInSomeWay, [&](Random& random) {
    storm.pool().close(kModes[random.below(3)]);
    if (random.one_in(2)) (void)storm.pool().join_until(10us);
    storm.pool().reopen();
  });
  over.store(true);
  thread.join();
  storm.check_books(true);
}

FIBER_TEST_CASE("exception handlers that park or throw lose neither a worker nor a slot") {
  std::atomic<std::uint64_t> handled{0};
  PoolOptions options{.capacity = 2, .queue_capacity = 3, .idle_timeout = kNever};
  options.on_exception = [&](std::exception_ptr thrown) {
    // Each exception of a handler writes a line to stderr.
    if (handled.fetch_add(1) % 256 != 0) return this_fiber::yield();
    std::rethrow_exception(std::move(thrown));
  };
  Storm storm(runtime, options);
  storm.blow(kSubmit, [&](Random&) { CHECK(storm.pool().stats().live <= 2); });
  storm.pool().wait_idle();
  CHECK(storm.pool().stats().failed == handled.load());
  CHECK(storm.pool().stats().started <= 2);
  CHECK(storm.gauge().most() <= 2);
  storm.check_books(false);
}

FIBER_TEST_CASE(
    "with caller_runs, workers run at most as many tasks at once as the capacity allows, and each "
    "task runs once") {
  Concurrency on_workers;
  std::atomic<std::size_t> in_callers{0};
  FiberPool pool({.capacity = 2, .queue_capacity = 1, .on_full = OnFull::caller_runs});
  std::atomic<std::uint64_t> accepted{0}, ran{0};
  WaitGroup submitters;
  submitters.add(kSubmitters);
  for (std::size_t s = 0; s < kSubmitters; ++s) {
    go([&, s] {
      Random random(s);
      const std::uint64_t self = this_fiber::id();
      for (std::size_t n = 0; n < kTasksEach; ++n) {
        const Accepted answer = pool.submit([&, self] {
          std::unique_ptr<Concurrency::Stay> stay;
          if (this_fiber::id() == self) {
            in_callers.fetch_add(1);
          } else {
            stay = std::make_unique<Concurrency::Stay>(on_workers);
          }
          this_fiber::yield();
          ran.fetch_add(1);
        });
        CHECK(answer);
        accepted.fetch_add(1);
        if (random.one_in(8)) CHECK(pool.stats().in_callers <= kSubmitters);
      }
      submitters.done();
    });
  }
  submitters.wait();
  pool.wait_idle();
  CHECK(ran.load() == accepted.load());
  CHECK(on_workers.most() <= 2);
  CHECK(in_callers.load() > 0);
  CHECK(pool.stats().completed == ran.load());
}

FIBER_TEST_CASE(
    "submit_until() ends for exactly one reason when room, a deadline and a stop request race") {
  Storm storm(runtime, stormy({.capacity = 2, .queue_capacity = 1}));
  std::atomic<std::uint64_t> late{0}, stopped{0};
  const auto offer = [&](FiberPool& pool, auto task, Random& random) {
    std::stop_source source;
    go([source, pauses = random.below(4)]() mutable {
      for (auto left = pauses; left > 0; --left) this_fiber::yield();
      source.request_stop();
    });
    const std::stop_token token = source.get_token();
    const auto time = std::chrono::microseconds(random.below(100));
    const auto error = pool.submit_until({Deadline::after(time), token}, std::move(task));
    if (error == Errc::timed_out) late.fetch_add(1);
    if (error == Errc::cancelled) stopped.fetch_add(1);
    return error;
  };
  storm.blow(offer, [&](Random&) { CHECK(balanced(storm.pool().stats())); });
  CHECK(storm.pool().stats().blocked == 0);
  CHECK(storm.pool().stats().rejected == late.load() + stopped.load());
  wait_until_true([&] { return storm.pool().stats().queued == 0; });
  storm.check_books(false);
}

FIBER_TEST_CASE("a pool refuses no task while its workers retire") {
  constexpr std::size_t kSlots = 4;
  const int rounds = 24 / static_cast<int>(kSlowdown) + 1;
  Concurrency gauge;
  FiberPool pool({.capacity = kSlots, .on_full = OnFull::reject, .idle_timeout = 1ms});
  for (int round = 0; round < rounds; ++round) {
    // Tasks take all slots at the same time.
    const std::size_t left = static_cast<std::size_t>(round) % kSlots;
    WaitGroup all_here;
    all_here.add(kSlots);
    for (std::size_t i = 0; i < kSlots; ++i) {
      CHECK(pool.submit([&] {
        const Concurrency::Stay stay(gauge);
        all_here.done();
        all_here.wait();
      }));
    }
    pool.wait_idle();
    // Some workers have lost their slots, but their fibers have not ended yet.
    wait_until_true([&] { return pool.stats().live <= left; });
  }
  const PoolStats stats = pool.stats();
  CHECK(stats.rejected == 0);
  CHECK(stats.completed == kSlots * static_cast<std::size_t>(rounds));
  CHECK(gauge.most() <= kSlots);
  CHECK(stats.retired > 0);
}

FIBER_TEST_CASE("concurrent cancels of a starting task agree on whether the task runs") {
  const int rounds = 500 / static_cast<int>(kSlowdown);
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  for (int round = 0; round < rounds; ++round) {
    std::atomic<bool> started{false};
    std::atomic<int> never_runs{0};
    auto task = pool.async([&] { started.store(true); });
    WaitGroup done;
    constexpr int kCancels = 4;
    done.add(kCancels + 1);
    for (int i = 0; i < kCancels; ++i) {
      go([&] {
        if (task.cancel()) never_runs.fetch_add(1);
        done.done();
      });
    }
    go([&] {
      task.wait();
      done.done();
    });
    done.wait();
    CHECK(never_runs.load() == (started.load() ? 0 : kCancels));
  }
  pool.wait_idle();
  CHECK(balanced(pool.stats()));
}

// There are no spare workers, because each would carve further stacks.
FIBER_TEST_CASE_WITH("short-lived pools leak no fiber, stack or descriptor",
                     {.options = {.max_spare_workers = 0}}) {
  const int rounds = 200 / static_cast<int>(kSlowdown);
  const std::uint64_t fibers_before = runtime.stats().live;
  std::uint64_t stacks = 0;
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> ran{0};
    {
      // The timeout is long: nothing waits for it at the end of the pool.
      FiberPool pool({.capacity = 8, .queue_capacity = 20, .idle_timeout = 1h});
      for (int i = 0; i < 20; ++i) {
        CHECK(pool.submit([&] {
          this_fiber::yield();
          ran.fetch_add(1);
        }));
      }
      if (round % 2 == 0) pool.wait_idle();
    }
    CHECK(ran.load() == 20);
    wait_until_true([&] { return runtime.stats().live == fibers_before; });
    if (round == rounds / 2) stacks = runtime.stats().stacks_carved;
  }
  // Stacks are carved in batches of 32 at most, and a worker may need its first one late.
  CHECK(runtime.stats().stacks_carved <= stacks + 32 * runtime.workers());
}

TEST_SUITE_END();
