#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/select.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/schedule");

using namespace std::chrono_literals;
namespace sim = weft::sim;

namespace {

// Lets two fibers add to a number without a lock. An update is lost if one fiber adds between the
// read and the write of the other.
void add_without_lock() {
  int number = 0;
  const auto add = [&number] {
    const int before = number;
    sim::point();
    number = before + 1;
  };
  auto one = weft::spawn(add);
  auto other = weft::spawn(add);
  one.join();
  other.join();
  sim::check(number == 2, "no update is lost");
}

void lock_in_two_orders() {
  weft::Mutex left;
  weft::Mutex right;
  const auto use = [](weft::Mutex& first, weft::Mutex& second) {
    first.lock();
    second.lock();
    second.unlock();
    first.unlock();
  };
  auto one = weft::spawn([&] { use(left, right); });
  auto other = weft::spawn([&] { use(right, left); });
  one.join();
  other.join();
}

sim::Failure failure_of(const std::function<void()>& body, const sim::Options& options) {
  try {
    (void)sim::explore(options, [&](sim::World&) { body(); });
  } catch (const sim::Failure& failure) {
    return failure;
  }
  return {0, "", ""};
}

const std::vector<sim::Strategy> kStrategies{sim::Strategy::random, sim::Strategy::priorities,
                                             sim::Strategy::exhaustive};

}  // namespace

TEST_CASE("each strategy of sim::explore() finds a lost update and a deadlock of two locks") {
  const weft::test::TestGuard guard("each strategy finds a lost update and a deadlock");
  for (const sim::Strategy strategy : kStrategies) {
    CAPTURE(static_cast<int>(strategy));
    const sim::Options options{.seeds = 200, .strategy = strategy};
    CHECK(failure_of(&add_without_lock, options)
              .reason()
              .starts_with("check failed: no update is lost"));
    CHECK(failure_of(&lock_in_two_orders, options).reason().starts_with("deadlock: "));
  }
}

TEST_CASE(
    "the priorities strategy of sim::explore() finds a lost update at depth 2, but not at depth "
    "1") {
  const weft::test::TestGuard guard("priorities find a lost update at depth 2");
  const auto reason_at = [](unsigned depth) {
    return failure_of(&add_without_lock,
                      {.seeds = 500, .strategy = sim::Strategy::priorities, .depth = depth})
        .reason();
  };
  CHECK(reason_at(1).empty());
  CHECK(reason_at(2).starts_with("check failed: no update is lost"));
}

TEST_CASE("sim::explore() finds no lost update when its exhaustive strategy allows no preemption") {
  const weft::test::TestGuard guard("without a preemption there is no lost update");
  const sim::Report report =
      sim::explore({.strategy = sim::Strategy::exhaustive, .max_preemptions = 0},
                   [](sim::World&) { add_without_lock(); });
  CHECK(report.is_complete);
  CHECK(report.runs > 1);
}

TEST_CASE("the exhaustive strategy of sim::explore() runs each order of three fibers once") {
  const weft::test::TestGuard guard("the exhaustive strategy runs each order once");
  std::multiset<std::string> orders;
  const sim::Report report =
      sim::explore({.strategy = sim::Strategy::exhaustive}, [&](sim::World&) {
        std::string order;
        weft::WaitGroup ended;
        ended.add(3);
        for (const char name : {'a', 'b', 'c'}) {
          weft::go([&order, &ended, name] {
            order.push_back(name);
            ended.done();
          });
        }
        ended.wait();
        orders.insert(order);
      });
  CHECK(report.is_complete);
  CHECK(report.runs == orders.size());
  CHECK(std::set(orders.begin(), orders.end()).size() == 6);
}

TEST_CASE(
    "the exhaustive strategy of sim::explore() stops at max_schedules and reports an incomplete "
    "search") {
  const weft::test::TestGuard guard("the exhaustive strategy stops at its limit");
  const sim::Report report =
      sim::explore({.strategy = sim::Strategy::exhaustive, .max_schedules = 3}, [](sim::World&) {
        weft::WaitGroup ended;
        ended.add(5);
        for (int i = 0; i < 5; ++i) weft::go([&ended] { ended.done(); });
        ended.wait();
      });
  CHECK(report.runs == 3);
  CHECK(!report.is_complete);
}

TEST_CASE("a seed that failed during sim::explore() fails in the same way when run alone") {
  const weft::test::TestGuard guard("a seed fails again, alone");
  const sim::Failure first = failure_of(&add_without_lock, {.seeds = 200});
  REQUIRE(first.seed() != 0);
  CHECK(std::string(first.what()).find("WEFT_SIM_SEED=" + std::to_string(first.seed())) !=
        std::string::npos);
  const sim::Failure again =
      failure_of(&add_without_lock, {.seeds = 1, .first_seed = first.seed()});
  CHECK(std::string(again.what()) == first.what());
  setenv("WEFT_SIM_SEED", std::to_string(first.seed()).c_str(), 1);
  const sim::Failure by_environment = failure_of(&add_without_lock, {});
  unsetenv("WEFT_SIM_SEED");
  CHECK(std::string(by_environment.what()) == first.what());
}

TEST_CASE(
    "the report of a simulated failure names the preemptions that are needed for the failure") {
  const weft::test::TestGuard guard("the report of a failure names the preemption that it needs");
  const sim::Failure found = failure_of(&add_without_lock, {.seeds = 200});
  CHECK(found.reason().find("Shortened: 1 preemption is needed, in turn ") != std::string::npos);
  const sim::Failure needs_none = failure_of([] { sim::fail("always"); }, {.seeds = 200});
  CHECK(needs_none.reason().find("no preemption is needed") != std::string::npos);
}

TEST_CASE(
    "a simulated fiber that waits in a yield loop lets other fibers run, even without "
    "preemptions") {
  const weft::test::TestGuard guard("a fiber that waits by yielding lets others run");
  const auto waits = [] {
    bool is_done = false;
    auto other = weft::spawn([&] { is_done = true; });
    while (!is_done) weft::this_fiber::yield();
    sim::fail("always");
  };
  const sim::Failure found = failure_of(waits, {.seeds = 1, .max_turns = 10'000});
  CHECK(found.reason().find("no preemption is needed") != std::string::npos);
}

TEST_CASE(
    "shrinking finds the faults without which a failure does not occur, and story() shows them") {
  const weft::test::TestGuard guard("shrinking a failure finds the faults that it needs");
  std::string reason;
  std::string story;
  try {
    (void)sim::explore({.seeds = 100}, [](sim::World& world) {
      int starts = 0;
      world.host("alpha", [] {});
      world.host("beta", [&] { ++starts; });
      world.disturb({.partitions = 10, .restarts = 10, .stops = 10});
      world.run_for(2min);
      sim::check(starts < 4, "beta starts three times at most");
    });
  } catch (const sim::Failure& failure) {
    reason = failure.reason();
    story = failure.story();
  }
  CHECK(reason.starts_with("check failed: beta starts three times at most"));
  CHECK(reason.find("Shortened: 3 of ") != std::string::npos);
  CHECK(story.find("alpha") != std::string::npos);
  std::size_t crashes = 0;
  for (std::size_t at = 0; (at = story.find("crashes", at)) != std::string::npos; ++at) ++crashes;
  CHECK(crashes == 3);
  CHECK(story.find("reaches") == std::string::npos);
  CHECK(story.find("is stopped") == std::string::npos);
}

TEST_CASE("the story() of a sim::Failure is written as a trace file") {
  const weft::test::TestGuard guard("the story of a failure is written as a trace");
  const std::string file = "/tmp/weft_sim_trace_" + std::to_string(getpid()) + ".json";
  setenv("WEFT_SIM_TRACE", file.c_str(), 1);
  CHECK_THROWS_AS(sim::run([] {
                    sim::note("a \"row\"");
                    sim::fail("always");
                  }),
                  sim::Failure);
  unsetenv("WEFT_SIM_TRACE");
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  CHECK(text.starts_with("{\"displayTimeUnit\""));
  CHECK(text.find("\"name\":\"a \\\"row\\\"\"") != std::string::npos);
  CHECK(text.ends_with("}\n]}\n"));
  std::remove(file.c_str());
}

TEST_CASE("different seeds choose different fiber orders and different cases of a select") {
  const weft::test::TestGuard guard("different seeds choose different orders");
  std::set<std::string> seen;
  (void)sim::explore({.seeds = 100}, [&](sim::World&) {
    weft::Channel<int> one(4);
    weft::Channel<int> other(4);
    std::string chosen;
    for (int i = 0; i < 4; ++i) {
      CHECK(one.send(i));
      CHECK(other.send(i));
    }
    for (int i = 0; i < 4; ++i) {
      weft::select(weft::on_receive(one, [&](std::optional<int>) { chosen += '1'; }),
                   weft::on_receive(other, [&](std::optional<int>) { chosen += '2'; }));
    }
    seen.insert(chosen);
  });
  CHECK(seen.size() > 8);
}

TEST_CASE("the seed decides which fiber gets a lock or a value, and when fibers wake") {
  const weft::test::TestGuard guard("different seeds give a lock to different fibers");
  std::set<std::string> seen;
  (void)sim::explore({.seeds = 100}, [&](sim::World&) {
    weft::Mutex mutex;
    weft::Channel<int> values(2);
    std::string order;
    weft::WaitGroup ended;
    ended.add(2);
    mutex.lock();
    for (const char name : {'a', 'b'}) {
      weft::go([&, name] {
        if (values.receive() == 1) order.push_back(name);  // The fiber that takes the first value
        const std::lock_guard lock(mutex);
        order.push_back(name);  // This shows the order of the lock.
        ended.done();
      });
    }
    sim::settle();
    CHECK(values.send(1));
    CHECK(values.send(2));
    order.push_back('w');  // The seed decides whether the woken fiber precedes it.
    mutex.unlock();
    ended.wait();
    seen.insert(order);
  });
  CHECK(seen.size() >= 6);
}

TEST_CASE(
    "check_determinism() accepts runs that depend only on the seed, and reports where other runs "
    "first differ") {
  const weft::test::TestGuard guard("check_determinism()");
  const auto race = [](std::size_t fibers) {
    weft::WaitGroup ended;
    ended.add(fibers);
    for (std::size_t i = 0; i < fibers; ++i) {
      weft::go([&ended, i] {
        weft::this_fiber::sleep_for(std::chrono::milliseconds(sim::random(5) + i));
        ended.done();
      });
    }
    ended.wait();
  };
  CHECK(sim::check_determinism({.seeds = 20}, [&](sim::World&) { race(5); }).runs == 20);
  std::size_t runs = 0;
  std::string reason;
  try {
    (void)sim::check_determinism({}, [&](sim::World&) { race(3 + runs++ % 2); });
  } catch (const sim::Failure& failure) {
    reason = failure.reason();
  }
  CHECK(reason.starts_with("decision "));
  CHECK(reason.find("differs between two runs of one seed") != std::string::npos);
  CHECK(reason.find("wait group") != std::string::npos);  // The body waits in this call.
}

TEST_CASE("a failed check of the test framework fails the simulated run") {
  const weft::test::TestGuard guard("a test framework's own failures fail the run");
  int failures = 0;
  const sim::Options options{.seeds = 10, .has_failed = [&] { return failures > 0; }};
  const sim::Failure found = failure_of(
      [&] {
        if (sim::random(4) == 0) ++failures;
      },
      options);
  CHECK(found.seed() != 0);
  CHECK(failures == 1);
}

TEST_CASE("an unlocked counter loses updates with two simulated workers, but not with one") {
  const weft::test::TestGuard guard("one worker loses no update, and two workers do");
  for (const sim::Strategy strategy : kStrategies) {
    CAPTURE(static_cast<int>(strategy));
    const auto fails = [&](unsigned workers) {
      const sim::Options options{.seeds = 1000, .strategy = strategy, .workers = workers};
      return !failure_of(&add_without_lock, options).reason().empty();
    };
    CHECK(!fails(1));
    CHECK(fails(2));
  }
}

TEST_CASE(
    "a simulation interleaves as many running fibers as it has workers, and waiting fibers do not "
    "count") {
  const weft::test::TestGuard guard("as many fibers interleave as there are workers");
  for (const unsigned workers : {1U, 2U, 3U}) {
    unsigned most = 0;
    (void)sim::check_determinism({.seeds = 200, .workers = workers}, [&](sim::World&) {
      unsigned inside = 0;
      weft::Mutex mutex;
      std::vector<weft::JoinHandle<void>> fibers;
      for (int i = 0; i < 5; ++i) {
        fibers.push_back(weft::spawn([&] {
          for (int j = 0; j < 3; ++j) {
            most = std::max(most, ++inside);
            sim::point();
            --inside;
            weft::this_fiber::sleep_for(1us);
            const std::lock_guard lock(mutex);
          }
        }));
      }
      for (auto& fiber : fibers) fiber.join();
    });
    CHECK(most == workers);
  }
}

TEST_CASE("sim::compute() advances virtual time while the fiber keeps its worker") {
  const weft::test::TestGuard guard("a fiber that computes is charged the time");
  const auto delay_of_other = [](unsigned workers) {
    std::chrono::nanoseconds delay(0);
    sim::run(
        [&] {
          const auto began = weft::Clock::now();
          auto other = weft::spawn([&] { delay = weft::Clock::now() - began; });
          sim::compute(20ms);
          sim::check(weft::Clock::now() - began >= 20ms, "the time has passed");
          other.join();
        },
        {.workers = workers});
    return delay;
  };
  CHECK(delay_of_other(1) >= 20ms);
  CHECK(delay_of_other(2) < 20ms);
  CHECK(delay_of_other(0) < 20ms);
  sim::compute(24h);  // Outside of a simulation it has no effect.
}

TEST_CASE(
    "a simulated fiber that runs without waiting loses its worker to other fibers after 10 ms") {
  const weft::test::TestGuard guard("a fiber that runs on ends its turn after 10 ms");
  // With priorities each turn ends at the next call.
  const sim::Options options{.seeds = 10, .strategy = sim::Strategy::priorities, .workers = 1};
  sim::explore(options, [](sim::World&) {
    bool is_over = false;
    auto polls = weft::spawn([&] {
      while (!is_over) sim::point();
    });
    auto ends = weft::spawn([&] { is_over = true; });
    polls.join();
    ends.join();
  });
}

TEST_SUITE_END();
