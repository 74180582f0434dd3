// Tests pools under random calls of all kinds at once, from fibers, threads and their own tasks.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/stress/pool_target.hpp"
#include "tests/stress/workload.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Close;
using weft::FiberPool;
using weft::OnFull;
using weft::PoolOptions;
using weft::test::hardly_any_time;
using weft::test::PoolTarget;
using weft::test::Progress;
using weft::test::Random;

using Targets = std::vector<std::unique_ptr<PoolTarget>>;

// Makes all kinds of calls to all `targets` at once. In the list, sub-pools follow their parents.
void storm(Progress& progress, Targets& targets) {
  const auto live = [&](std::uint64_t stream) {
    Random random(stream);
    do {
      targets[random.below(targets.size())]->act(random, 0);
    } while (!progress.time_is_up());
  };
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::uint64_t i = 0; i < 24; ++i) fibers.push_back(weft::spawn([&live, i] { live(i); }));
  std::vector<std::thread> threads;
  for (std::uint64_t i = 100; i < 103; ++i) threads.emplace_back(live, i);
  for (std::thread& thread : threads) thread.join();
  for (auto& fiber : fibers) fiber.join();
  while (!targets.empty()) {
    targets.back()->end_and_check_books();
    targets.pop_back();
  }
  CHECK(progress.units() > 0);
}

TEST_SUITE_BEGIN("stress/pool");

THREAD_TEST_CASE("under random operations, pools keep correct statistics and exceed no limit") {
  Progress progress(runtime);
  const std::array options{
      PoolOptions{.capacity = 1, .idle_timeout = 100us},
      PoolOptions{.capacity = 3, .queue_capacity = 2, .max_blocked = 3, .idle_timeout = 1ms},
      PoolOptions{.capacity = 4, .min_workers = 2, .queue_capacity = weft::kUnlimited},
      PoolOptions{.capacity = 2, .on_full = OnFull::reject, .idle_timeout = weft::kNever},
      PoolOptions{.capacity = 3, .queue_capacity = 40, .on_full = OnFull::caller_runs},
      PoolOptions{.capacity = 2, .queue_capacity = 3, .on_full = OnFull::drop_oldest},
      PoolOptions{.capacity = 5, .grow = weft::GrowPolicy::eager(), .idle_timeout = 200us},
      PoolOptions{.capacity = 6,
                  .grow = weft::GrowPolicy::load_factor({.interval = 100us}),
                  .queue_capacity = 20,
                  .wake_order = weft::WakeOrder::fifo},
  };
  Targets targets;
  for (const PoolOptions& each : options) {
    targets.push_back(std::make_unique<PoolTarget>(progress, each));
  }
  storm(progress, targets);
}

THREAD_TEST_CASE(
    "under random operations, nested pools keep correct statistics and exceed no limit") {
  Progress progress(runtime);
  Targets targets;
  const auto add = [&](const PoolOptions& options, PoolTarget* parent = nullptr) {
    targets.push_back(std::make_unique<PoolTarget>(progress, options, parent));
    return targets.back().get();
  };
  PoolTarget* const small = add({.capacity = 1, .idle_timeout = 100us});
  add({.capacity = 1}, small);
  add({.capacity = 2, .queue_capacity = 5}, small);
  PoolTarget* const large = add({.capacity = 4, .queue_capacity = 3});
  add({.capacity = 2, .queue_capacity = weft::kUnlimited}, large);
  add({.capacity = 8, .on_full = OnFull::reject}, large);
  add({.capacity = 2, .queue_capacity = 2, .on_full = OnFull::caller_runs}, large);
  PoolTarget* const dropping = add({.capacity = 3, .queue_capacity = 2, .on_full = OnFull::reject});
  PoolTarget* const middle =
      add({.capacity = 2, .queue_capacity = 2, .on_full = OnFull::drop_oldest}, dropping);
  add({.capacity = 2, .queue_capacity = 1}, middle);
  storm(progress, targets);
}

// The caller that destroys the last handle of a pool does the remaining work.
FIBER_TEST_CASE("short-lived pools under load run every accepted task before they are destroyed") {
  Progress progress(runtime);
  Random random(1);
  while (!progress.time_is_up()) {
    std::atomic<std::uint64_t> ran{0}, accepted{0};
    {
      FiberPool pool({.capacity = 1 + random.below(4),
                      .queue_capacity = random.below(4),
                      .idle_timeout = std::chrono::microseconds(1 + random.below(200))});
      std::vector<weft::JoinHandle<void>> submitters;
      for (std::uint64_t s = random.below(5); s > 0; --s) {
        submitters.push_back(weft::spawn([&, stream = random()] {
          Random own(stream);
          for (std::uint64_t i = own.below(20); i > 0; --i) {
            const std::error_code error = pool.submit([&, yields = own.one_in(3)] {
              if (yields) weft::this_fiber::yield();
              ran.fetch_add(1);
            });
            if (!error) accepted.fetch_add(1);
            if (own.one_in(5)) weft::this_fiber::sleep_for(hardly_any_time(own));
          }
        }));
      }
      const bool closes_early = random.one_in(3);
      if (closes_early) pool.close(Close::drain);
      submitters.clear();  // Joins them.
    }
    if (ran.load() != accepted.load()) FAIL_CHECK("an accepted task has not run");
    progress.made();
  }
}

// The deadline may drop the task between the two checks of a submit.
FIBER_TEST_CASE_WITH("async() throws timed_out if the task's deadline passes during the call",
                     {.workers = {4}}) {
  Progress progress(runtime);
  FiberPool pool({.capacity = 3, .queue_capacity = 50});
  std::atomic<std::uint64_t> wrong{0};
  std::vector<weft::JoinHandle<void>> callers;
  for (std::uint64_t stream = 0; stream < 4; ++stream) {
    callers.push_back(weft::spawn([&, stream] {
      Random random(stream);
      while (!progress.time_is_up()) {
        const auto time_left = std::chrono::nanoseconds(200 + random.below(6000));
        try {
          (void)pool.async({.deadline = weft::Deadline::after(time_left)}, [] {});
        } catch (const std::system_error& refused) {
          if (refused.code() != weft::Errc::timed_out) ++wrong;
        }
        progress.made();
        if (random.one_in(64)) weft::this_fiber::yield();
      }
    }));
  }
  callers.clear();  // Joins them.
  pool.wait_idle();
  CHECK(wrong == 0);
}

TEST_SUITE_END();

}  // namespace
