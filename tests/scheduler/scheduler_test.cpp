// Tests a scheduler without a runtime: it searches for no deadlocks and has no monitor, and the
// test provides the events.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/timer.hpp>

#include "scheduler/event_source.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::scheduler::Scheduler;
using weft::scheduler::SchedulerOptions;
using weft::scheduler::Watch;
using weft::test::TestGuard;

SchedulerOptions bare(unsigned workers) {
  SchedulerOptions options;
  options.workers = workers;
  options.max_fibers = 1000;
  options.report_overflow = false;
  options.monitor.enabled = false;
  return options;
}

// Never watches a descriptor, so workers sleep on their futexes.
class NoEvents : public weft::scheduler::EventSource {
 public:
  [[nodiscard]] std::size_t wait(Deadline) noexcept override { return 0; }
  void interrupt() noexcept override {}
};

// Watches an event that never happens. The test can hold up a thread that has interrupted a
// sleeper.
class HeldInterrupts : public weft::scheduler::EventSource {
 public:
  explicit HeldInterrupts(std::function<void()> hold) : hold_(std::move(hold)) {
    (void)begin_watch();
  }

  [[nodiscard]] std::size_t wait(Deadline deadline) noexcept override {
    std::unique_lock lock(mutex_);
    if (deadline.is_never()) has_sleeper_ = true;
    while (!interrupted_ && !deadline.passed()) changed_.wait_for(lock, 1ms);
    if (deadline.is_never()) has_sleeper_ = false;
    if (deadline != Deadline::past()) interrupted_ = false;
    return 0;
  }
  void interrupt() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      interrupted_ = true;
    }
    changed_.notify_all();
    hold_();
  }
  // Returns whether a worker is in wait() without a deadline.
  [[nodiscard]] bool has_sleeper() const noexcept { return has_sleeper_; }

 private:
  const std::function<void()> hold_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false;
  std::atomic<bool> has_sleeper_{false};
};

[[nodiscard]] bool is_registered(const Scheduler* scheduler) {
  bool found = false;
  const auto compare = [&](Scheduler& other) { found = found || &other == scheduler; };
  return weft::scheduler::visit_registry(Deadline::never(), compare) && found;
}

TEST_SUITE_BEGIN("scheduler/scheduler");

// One of the two workers sleeps and has the watch, so no other worker could fire the timer.
TEST_CASE("a worker without timers fires the timer of another worker that is busy computing") {
  for (const unsigned workers : {2U, 8U}) {
    const TestGuard guard("a worker that sleeps for good sees to a timer");
    NoEvents events;
    Scheduler scheduler(bare(workers), events);
    const auto compute = [&scheduler] {
      const auto& watch = scheduler.shared().watch();
      while (watch.holder() == Watch::kNobody) weft::detail::pause_cpu();
      std::atomic<bool> called{false};
      const auto call = weft::call_after(100ms, [&] { called = true; });
      while (!called) weft::detail::pause_cpu();
    };
    scheduler.spawn(weft::detail::Task(compute), {}, nullptr);
    scheduler.retire();
  }
}

// Holds the input of a worker's decision to search. The worker has `queued` fibers; `computing`
// workers, including this worker, compute, and the others sleep.
struct Search {
  bool is_worthwhile = false;
  std::int64_t time = 0;
};
Search ask_about_search(weft::scheduler::EventSource& events, unsigned workers, unsigned computing,
                        unsigned queued) {
  Scheduler scheduler(bare(workers), events);
  std::atomic<unsigned> begun{0};
  std::atomic<bool> over{false};
  Search found;
  const auto compute = [&] {
    ++begun;
    while (!over) weft::detail::pause_cpu();
  };
  const auto ask = [&] {
    while (begun < computing - 1 || scheduler.shared().awake_hint() != computing)
      weft::detail::pause_cpu();
    for (unsigned i = 0; i < queued; ++i) weft::detail::spawn(weft::detail::Task([] {}));
    found = {weft::scheduler::is_search_worthwhile(scheduler.shared()),
             weft::scheduler::search_time(scheduler.shared())};
    over = true;
  };
  scheduler.spawn(weft::detail::Task(ask), {}, nullptr);
  for (unsigned i = 1; i < computing; ++i) {
    scheduler.spawn(weft::detail::Task(compute), {}, nullptr);
  }
  scheduler.retire();
  return found;
}

TEST_CASE("a worker searches only while another awake worker may have work") {
  const TestGuard guard("a search is made only if it may be of use");
  NoEvents none;
  CHECK(!ask_about_search(none, 1, 1, 0).is_worthwhile);
  CHECK(!ask_about_search(none, 2, 1, 0).is_worthwhile);
  const Search full = ask_about_search(none, 2, 2, 0);
  CHECK(full.is_worthwhile);
  HeldInterrupts watched([] {});
  CHECK(!ask_about_search(watched, 2, 1, 0).is_worthwhile);
  CHECK(!ask_about_search(watched, 2, 2, 0).is_worthwhile);
  CHECK(!ask_about_search(watched, 3, 2, 0).is_worthwhile);
  const Search two_looks = ask_about_search(watched, 2, 2, 1);
  CHECK(two_looks.is_worthwhile);
  CHECK(two_looks.time > 0);
  CHECK(two_looks.time < full.time);
}

TEST_CASE("the destructor of a scheduler waits for a plain thread that is still waking a worker") {
  const TestGuard guard("the destructor waits for a thread that leaves");
  std::optional<Scheduler> scheduler;
  const Scheduler* address = nullptr;
  std::thread outsider;
  std::atomic<bool> begun{false};
  std::atomic<bool> held{false};
  std::atomic<bool> destroyed{false};
  // Waits until the destructor waits. A destructor that does not wait gets time to end; one that
  // waits does not end meanwhile, however long that takes.
  HeldInterrupts events([&] {
    if (std::this_thread::get_id() != outsider.get_id() || held.exchange(true)) return;
    while (is_registered(address)) std::this_thread::yield();
    for (int i = 0; i < 100 && !destroyed; ++i) std::this_thread::sleep_for(1ms);
    CHECK(!destroyed);
  });
  // If the only worker sleeps, it is in the event source, and must be interrupted.
  address = &scheduler.emplace(bare(1), events);
  outsider = std::thread([&] {
    while (!begun) std::this_thread::yield();
    while (!held) {
      if (scheduler->shared().live() == 0) scheduler->spawn(weft::detail::Task([] {}), {}, nullptr);
    }
  });
  begun = true;
  while (!held) std::this_thread::yield();
  scheduler->retire();
  scheduler.reset();
  destroyed = true;
  outsider.join();
}

TEST_SUITE_END();

}  // namespace
