// Tests that memory that a burst used is released even though workers never sleep for long.
#include <atomic>
#include <chrono>
#include <thread>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "scheduler/scheduler.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::scheduler::Scheduler;

// Runs `burst` fibers at once, each with a separate stack, that end together.
void run_burst(weft::Runtime& runtime) {
  const int burst = 20'000 / static_cast<int>(weft::test::kSlowdown);
  weft::Event end;
  weft::WaitGroup group;
  group.add(static_cast<std::uint64_t>(burst));
  std::atomic<int> started{0};
  for (int i = 0; i < burst; ++i) {
    runtime.go([&] {
      ++started;
      end.wait();
      group.done();
    });
  }
  while (started < burst) std::this_thread::sleep_for(1ms);
  CHECK(runtime.stats().stacks_resident >= static_cast<std::uint64_t>(burst));
  end.set();
  group.wait();
}

TEST_SUITE_BEGIN("scheduler/decay");

THREAD_TEST_CASE("memory used by a burst of fibers is freed under a continuous light load") {
  Scheduler& scheduler = *Scheduler::current();
  const unsigned workers = runtime.workers();
  std::atomic<bool> stop{false};
  weft::WaitGroup sleepers;
  sleepers.add(workers);
  for (unsigned i = 0; i < workers; ++i) {
    runtime.go([&] {
      while (!stop) weft::this_fiber::sleep_for(5ms);
      sleepers.done();
    });
  }
  run_burst(runtime);
  // Gives memory back, as the monitor does, until few stacks remain.
  const auto few = [&runtime] {
    const weft::RuntimeStats stats = runtime.stats();
    return stats.stacks_resident <= 70 * (runtime.workers() + stats.spare_workers) + 200;
  };
  while (!few()) {
    while (scheduler.shared().stores().decay_some(Deadline::now_nanoseconds())) continue;
    std::this_thread::sleep_for(5ms);
  }
  stop = true;
  sleepers.wait();
}

// The caller passes the time, so the number of steps depends only on the idle memory.
THREAD_TEST_CASE_WITH("any amount of idle memory is freed within one decay period",
                      {.options = {.monitor = false}}) {
  Scheduler& scheduler = *Scheduler::current();
  run_burst(runtime);
  REQUIRE(runtime.wait_idle_for(60s));
  // The next two periods need no stack.
  constexpr std::int64_t kPeriod = 500'000'000;
  constexpr std::int64_t kSample = 10'000'000;
  std::int64_t now = Deadline::now_nanoseconds();
  (void)scheduler.shared().stores().decay_some(now);
  (void)scheduler.shared().stores().decay_some(now += kPeriod);
  // All samples of a period together give back all memory; with steps of 8 chains, it would take 78
  // samples.
  for (int sample = 0; sample < 50; ++sample)
    (void)scheduler.shared().stores().decay_some(now += kSample);
  CHECK(runtime.stats().stacks_resident <= 70 * runtime.workers() + 200);
}

TEST_CASE(
    "stacks that are needed in each decay period are kept, and only unneeded stacks are freed") {
  weft::fibers::StackDepot depot([](weft::fibers::Arrival) {});
  constexpr unsigned kClass = weft::fibers::kDefaultSizeClass;
  std::vector<weft::fibers::Stack*> chains;
  for (int i = 0; i < 10; ++i) chains.push_back(depot.take_chain(kClass));
  for (auto* chain : chains) depot.give_chain(chain);
  depot.begin_decay_period();  // Ends the period of the gives, which is the first.
  CHECK(!depot.decay(100));
  CHECK(depot.space().counts().cold == 0);
  // Three chains are taken at a time.
  for (int round = 0; round < 5; ++round) {
    chains.clear();
    for (int i = 0; i < 3; ++i) chains.push_back(depot.take_chain(kClass));
    for (auto* chain : chains) depot.give_chain(chain);
  }
  depot.begin_decay_period();
  CHECK(depot.decay(2));  // More chains are due.
  CHECK(!depot.decay(100));
  CHECK(depot.space().counts().cold == 7 * weft::fibers::stacks_per_chain(kClass));
  CHECK(depot.has_surplus_hint());
  while (depot.trim(8)) continue;
}

TEST_SUITE_END();

}  // namespace
