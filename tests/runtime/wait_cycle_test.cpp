// Tests fibers that wait for each other while other fibers live.
#include <chrono>
#include <cstdint>
#include <functional>
#include <latch>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include <weft/detail/thread_annotations.hpp>
#include <weft/dump.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/upkeep/census.hpp"
#include "scheduler/upkeep/wait_cycles.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/one_worker.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/wait_cycles.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using scheduler::WaitCycle;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The owner waits, and cannot unlock the mutex.
void unlock_for_owner(Mutex& mutex) WEFT_NOT_ANALYZED { mutex.unlock(); }

// Makes two fibers, each of which owns a mutex and waits for the other mutex. They lock without
// guards, because the test ends the cycle by unlocking `first` for its owner.
struct Crossed {
  Crossed() {
    ended.add(2);
    go({.name = "one"}, [this]() WEFT_NOT_ANALYZED {
      first.lock();
      both.wait();
      second.lock();
      second.unlock();
      ended.done();
    });
    go({.name = "other"}, [this]() WEFT_NOT_ANALYZED {
      second.lock();
      both.wait();
      first.lock();
      first.unlock();
      second.unlock();
      ended.done();
    });
    await_parked(2);
    both.set();
  }
  ~Crossed() WEFT_NOT_ANALYZED {
    first.unlock();
    ended.wait();
  }
  Crossed(const Crossed&) = delete;
  Crossed& operator=(const Crossed&) = delete;

  Mutex first;
  Mutex second;
  Event both;
  WaitGroup ended;
};

}  // namespace

TEST_SUITE_BEGIN("runtime/wait_cycle");

FIBER_TEST_CASE_WITH("the search for wait cycles finds two fibers that wait for each other's mutex",
                     {kWithOwners}) {
  if (!can_read_memory()) return;
  const Crossed crossed;
  const std::vector<WaitCycle> cycles = await_cycle();
  CHECK(cycles.size() == 1);
  CHECK(cycles.at(0).members.size() == 2);
#ifdef WEFT_CONTEXT_BOOST
  constexpr bool kHasCalls = false;
#else
  constexpr bool kHasCalls = !kSanitized && !kEmulated;
#endif
  CHECK((cycles.at(0).members.at(0).calls.count > 2) == kHasCalls);
  std::ostringstream out;
  dump::write_deadlocks(out);
  CHECK(contains(out.str(), "weft: deadlock: 2 fibers wait for each other, in a circle"));
  CHECK(contains(out.str(), "'one' is parked: mutex"));
  CHECK(contains(out.str(), "'other' is parked: mutex"));
}

FIBER_TEST_CASE_WITH(
    "the search for wait cycles finds a fiber that waits for a mutex that it already holds",
    {kWithOwners}) {
  if (!can_read_memory()) return;
  Mutex mutex;
  auto twice = spawn([&]() WEFT_NOT_ANALYZED {
    mutex.lock();
    mutex.lock();
    mutex.unlock();
  });
  CHECK(await_cycle().at(0).members.size() == 1);
  unlock_for_owner(mutex);
  twice.join();
}

FIBER_TEST_CASE_WITH(
    "the search for wait cycles finds a fiber that holds a mutex while joining a fiber that needs "
    "the mutex",
    {kWithOwners}) {
  if (!can_read_memory()) return;
  using Task = std::function<void()>;
  using Join = std::function<void(const Task& task, const Task& before)>;
  const Join by_handle = [](const Task& task, const Task& before) {
    auto handle = spawn(task);
    before();
    handle.join();
  };
  const Join by_wait_group = [](const Task& task, const Task& before) {
    WaitGroup group;
    for (int i = 0; i < 2; ++i) group.go(task);  // Two cycles that share the joiner count as one.
    before();
    group.wait();
  };
  const Join by_task_group = [](const Task& task, const Task& before) {
    TaskGroup group;
    group.spawn(task);
    before();
    group.join();
  };
  // A task that has not started runs on the joiner's stack.
  const Task at_once = [] {};
  const Task once_it_waits = [&runtime] { await_parked(runtime, "mutex"); };
  for (const Task& before : {at_once, once_it_waits}) {
    for (const Join& join : {by_handle, by_wait_group, by_task_group}) {
      Mutex mutex;
      auto joiner = spawn([&]() WEFT_NOT_ANALYZED {
        mutex.lock();
        join(
            [&] {
              mutex.lock();
              mutex.unlock();
            },
            before);
      });
      const std::vector<WaitCycle> cycles = await_cycle();
      CHECK(cycles.size() == 1);
      CHECK(cycles.at(0).members.size() == 2);
      unlock_for_owner(mutex);
      joiner.join();
    }
  }
}

FIBER_TEST_CASE_WITH("the search for wait cycles ignores waits that another event may end",
                     {kWithOwners}) {
  if (!can_read_memory()) return;
  Mutex first;
  Mutex second;
  Event both;
  std::stop_source stop;
  WaitGroup ended;
  // One of the two waits has a deadline.
  ended.go([&] {
    first.lock();
    both.wait();
    CHECK_FALSE(second.try_lock_until({Deadline::after(1h), stop.get_token()}));
    first.unlock();
  });
  ended.go([&] {
    second.lock();
    both.wait();
    first.lock();
    first.unlock();
    second.unlock();
  });
  // The owner sleeps.
  Mutex of_sleeper;
  Event wakes;
  ended.go([&] {
    of_sleeper.lock();
    wakes.wait();
    of_sleeper.unlock();
  });
  await_parked(3);
  ended.go([&] {
    of_sleeper.lock();
    of_sleeper.unlock();
  });
  both.set();
  await_parked(4);
  for (int i = 0; i < 10; ++i) {
    CHECK(cycles_now().empty());
    this_fiber::yield();
  }
  stop.request_stop();
  wakes.set();
  ended.wait();
}

FIBER_TEST_CASE_WITH(
    "the search for wait cycles does not treat a former owner of a mutex as the owner",
    {kWithOwners}) {
  if (!can_read_memory()) return;
  Mutex mutex;
  Event released;
  WaitGroup waiters;
  waiters.add(1);
  // This fiber has locked and unlocked the mutex, and then waits for the fiber that waits for it.
  auto former = spawn([&] {
    mutex.lock();
    mutex.unlock();
    released.set();
    waiters.wait();
  });
  released.wait();
  mutex.lock();
  waiters.go([&] {
    mutex.lock();
    mutex.unlock();
  });
  waiters.done();
  await_parked(2);
  for (int i = 0; i < 10; ++i) CHECK(cycles_now().empty());
  mutex.unlock();
  former.join();
}

// A fiber that a wait runs in place has its header in the frame of the caller. That frame may be
// gone when the search reads it, and then the header holds any bytes.
FIBER_TEST_CASE_WITH(
    "the search for wait cycles ignores a stack header with a wrong lowest address",
    {.workers = {1}}) {
  if (!can_read_memory() || !one_worker_keeps_order()) return;
  // Fibers whose headers are around that of the caller.
  WaitGroup gate;
  gate.add(1);
  WaitGroup others;
  for (int i = 0; i < 8; ++i) others.go([&] { gate.wait(); });
  await_parked(8);
  const fibers::Fiber* caller = scheduler::current_worker()->current_fiber();
  WaitGroup group;
  group.go([&] {
    REQUIRE(caller->state.load(detail::relaxed) == fibers::FiberState::inlining);
    fibers::Stack& header = *caller->stack.load(detail::relaxed);
    for (char* wrong :
         {reinterpret_cast<char*>(UINTPTR_MAX), reinterpret_cast<char*>(&header + 1)}) {
      char* const right = std::exchange(header.lowest, wrong);
      const std::size_t found = cycles_now().size();
      header.lowest = right;
      CHECK(found == 0);
    }
  });
  group.wait();
  gate.done();
  others.wait();
}

TEST_CASE("the monitor reports each wait cycle once") {
  if (!can_read_memory()) return;
  const TestGuard guard("the monitor reports each cycle once");
  std::vector<std::string> reports;
  std::latch is_reported(1);
  Runtime runtime({.workers = 2,
                   .on_partial_deadlock =
                       [&](std::string_view report) {
                         reports.emplace_back(report);
                         if (reports.size() == 1) is_reported.count_down();
                       },
                   .lock_owners = true});
  {
    const RuntimeScope scope(runtime);
    const Crossed crossed;
    is_reported.wait();
    // Acts as the monitor would a minute later, and again later.
    (void)scheduler::visit_registry(Deadline::never(), [&](scheduler::Scheduler& scheduler) {
      const std::int64_t now = Deadline::now_nanoseconds();
      scheduler::Census census(scheduler.shared().fibers());
      while (!census.covers(now, now)) {
      }
      CHECK(census.waits_for_fibers() == 2);
      scheduler::CycleWatch watch(scheduler.shared());
      for (int minute = 0; minute < 3; ++minute) {
        watch.step(census, now + minute * 60'000'000'000, false);
      }
    });
  }
  CHECK(reports.size() == 2);
  CHECK(contains(reports.at(0), "'one' is parked: mutex"));
}

TEST_SUITE_END();

}  // namespace weft::test
