// Tests that the number of workers follows the processors that the process may use.
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "base/cgroups.hpp"
#include "base/thread.hpp"
#include "io/poller.hpp"
#include "runtime/config.hpp"
#include "scheduler/scheduler.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scheduler::ActiveWorkers;
using weft::scheduler::Scheduler;
using weft::scheduler::SchedulerOptions;
using weft::test::TestGuard;
using weft::this_fiber::yield;

constexpr unsigned kMost = 8;

// Returns options with which each sample of the monitor counts the processors.
SchedulerOptions following(std::function<unsigned()> count, unsigned spares = 0) {
  SchedulerOptions options;
  options.workers = std::min(count(), kMost);
  options.processors = {.count = std::move(count), .most_workers = kMost, .period = 0ns};
  options.max_fibers = 100'000;
  options.report_overflow = false;
  options.monitor.spares = spares;
  return options;
}

// Runs a scheduler with fibers that keep it busy, so that the monitor makes samples.
class Busy {
 public:
  explicit Busy(SchedulerOptions options) : scheduler_(std::move(options), events_) {
    for (int i = 0; i < 4; ++i) {
      weft::go([this] {
        while (!stop_) yield();
      });
    }
  }
  ~Busy() {
    stop_ = true;
    scheduler_.retire();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  [[nodiscard]] weft::scheduler::Shared& shared() noexcept { return scheduler_.shared(); }
  void wait_for(unsigned at_work) {
    while (shared().active().at_work() != at_work) std::this_thread::yield();
  }

 private:
  std::atomic<bool> stop_{false};
  weft::io::Poller events_;
  Scheduler scheduler_;
};

TEST_SUITE_BEGIN("runtime/active_workers");

TEST_CASE("workers become inactive and active again as the number of processors changes") {
  const TestGuard guard("the number of workers follows that of processors");
  for (const unsigned first : {1U, 2U, 8U}) {
    std::atomic<unsigned> processors{first};
    Busy busy(following([&] { return processors.load(); }));
    CHECK(busy.shared().active().usual() == first);
    for (const unsigned next : {2U, 1U, 4U, 1U, 100U, 3U}) {
      processors = next;
      const unsigned expected = std::clamp(next, 1U, kMost);
      busy.wait_for(expected);
      CHECK(busy.shared().active().usual() == expected);
    }
    CHECK(busy.shared().desks().size() == kMost);
  }
}

TEST_CASE("the number of workers stays the same when no descriptor is free to read the CPU quota") {
  const TestGuard guard("the number stays if it is not known");
  std::atomic<unsigned> processors{2};
  std::atomic<unsigned> looks{0};
  Busy busy(following([&] {
    ++looks;
    return processors.load();
  }));
  processors = 0;
  const unsigned seen = looks;
  while (looks < seen + 3) std::this_thread::yield();
  CHECK(busy.shared().active().at_work() == 2);
}

TEST_CASE("a number of workers set by the program does not change with the number of processors") {
  const TestGuard guard("a number that was set does not follow");
  std::atomic<unsigned> looks{0};
  SchedulerOptions options = following([&] { return looks.fetch_add(1) % 2 + 1; });
  options.workers = 3;
  options.processors.most_workers = 0;
  Busy busy(std::move(options));
  const unsigned seen = looks;
  while (looks < seen + 4) std::this_thread::yield();
  CHECK(busy.shared().active().at_work() == 3);
  CHECK(busy.shared().active().usual() == 3);

  CHECK(weft::runtime::resolve({.workers = 2}, nullptr).processors.most_workers == 0);
  if (std::getenv("WEFT_WORKERS") != nullptr) return;
  CHECK(weft::runtime::resolve({}, nullptr).processors.most_workers >= 1);
}

// Returns how often the workers at rest have switched, in total.
std::uint64_t switches_at_rest(weft::scheduler::Shared& shared) {
  std::uint64_t switches = 0;
  for (const auto* desk : shared.desks()) {
    if (desk->is_resting()) switches += desk->recorder.counters().switches.get();
  }
  return switches;
}

TEST_CASE("an inactive worker runs no fiber until the worker becomes active again") {
  const TestGuard guard("a worker that has left runs no fiber");
  std::atomic<unsigned> processors{4};
  Busy busy(following([&] { return processors.load(); }));
  busy.wait_for(4);
  processors = 1;
  busy.wait_for(1);
  while (std::ranges::count_if(busy.shared().desks(), &weft::scheduler::Desk::is_resting) != 3) {
    std::this_thread::yield();
  }
  const std::uint64_t before = switches_at_rest(busy.shared());
  std::atomic<int> left{1000};
  for (int i = 0; i < 1000; ++i) weft::go([&] { --left; });
  while (left != 0) std::this_thread::yield();
  CHECK(switches_at_rest(busy.shared()) == before);
}

TEST_CASE("pinned fibers of an inactive worker still run on that worker") {
  const TestGuard guard("pinned fibers of a worker that has left");
  std::atomic<unsigned> processors{4};
  Busy busy(following([&] { return processors.load(); }));
  busy.wait_for(4);
  std::array<std::atomic<pid_t>, 4> homes{};
  std::array<weft::Event, 3> events;
  std::atomic<int> moved{0};
  std::atomic<int> arrived{0};
  weft::WaitGroup group;
  for (auto& home : homes) {
    group.add(1);
    weft::go({.pinned = true}, [&] {
      home = ::gettid();
      for (auto& event : events) {
        ++arrived;
        event.wait();
        if (::gettid() != home) ++moved;
      }
      group.done();
    });
  }
  for (int round = 0; round < 3; ++round) {
    while (arrived != 4 * (round + 1)) std::this_thread::yield();
    processors = round == 1 ? 4 : 1;
    busy.wait_for(processors);
    events[static_cast<std::size_t>(round)].set();
  }
  group.wait();
  CHECK(moved == 0);
  CHECK(std::set<pid_t>(homes.begin(), homes.end()).size() == 4);
  busy.wait_for(1);
}

// Makes files that replace the system's files, with a cgroup of version 2 whose quota can be set.
class FakeGroup {
 public:
  FakeGroup() {
    std::string name = std::filesystem::temp_directory_path() / "weft-quota-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ + "/proc/self");
    std::filesystem::create_directories(root_ + "/sys/fs/cgroup/service");
    put("/proc/self/cgroup", "0::/service");
    put("/proc/self/mountinfo",
        "31 22 0:27 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate");
  }
  ~FakeGroup() { std::filesystem::remove_all(root_); }
  FakeGroup(const FakeGroup&) = delete;
  FakeGroup& operator=(const FakeGroup&) = delete;

  // The file is replaced as a whole, because the monitor may be reading it.
  void set_quota(const std::string& quota) {
    put("/next", quota);
    std::filesystem::rename(root_ + "/next", root_ + "/sys/fs/cgroup/service/cpu.max");
  }
  [[nodiscard]] unsigned processors() const {
    const unsigned quota = weft::base::Cgroups(root_).processors();
    return quota == 0 ? 6 : std::min(quota, 6U);
  }

 private:
  void put(const std::string& path, const std::string& text) {
    std::ofstream(root_ + path) << text << '\n';
  }

  std::string root_;
};

TEST_CASE("the number of workers follows the CPU quota of the control group") {
  const TestGuard guard("the number of workers follows the quota");
  FakeGroup group;
  group.set_quota("max 100000");
  Busy busy(following([&] { return group.processors(); }));
  CHECK(busy.shared().active().usual() == 6);
  for (const auto& [quota, expected] : {std::pair("150000 100000", 2U),
                                        {"50000 100000", 1U},
                                        {"400000 100000", 4U},
                                        {"max 100000", 6U}}) {
    group.set_quota(quota);
    busy.wait_for(expected);
  }
}

// Changes the affinity of all threads of the process, as `taskset -ap` does.
class Affinity {
 public:
  Affinity() {
    CPU_ZERO(&before_);
    (void)sched_getaffinity(0, sizeof before_, &before_);
  }
  ~Affinity() { set(before_); }
  Affinity(const Affinity&) = delete;
  Affinity& operator=(const Affinity&) = delete;

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(CPU_COUNT(&before_)); }
  void restore() const { set(before_); }
  void leave_one() const {
    cpu_set_t one;
    CPU_ZERO(&one);
    int first = 0;
    while (!CPU_ISSET(first, &before_)) ++first;
    CPU_SET(first, &one);
    set(one);
  }

 private:
  static void set(const cpu_set_t& processors) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      (void)sched_setaffinity(std::atoi(task.path().filename().c_str()), sizeof processors,
                              &processors);
    }
  }

  cpu_set_t before_;
};

TEST_CASE("the number of workers follows the process's CPU affinity mask") {
  const TestGuard guard("the number of workers follows the affinity mask");
  const Affinity affinity;
  const unsigned all = weft::base::usable_processors();
  if (affinity.count() < 2 || all < 2) {
    return weft::test::skip("the process may use one processor only");
  }
  Busy busy(following(&weft::base::usable_processors));
  busy.wait_for(std::min(all, kMost));
  affinity.leave_one();
  busy.wait_for(1);
  affinity.restore();
  busy.wait_for(std::min(all, kMost));
}

// Passes bytes through a pipe and back until `stop`.
void echo(const std::atomic<bool>& stop, weft::WaitGroup& group) {
  auto there = weft::io::make_pipe().value;
  auto back = weft::io::make_pipe().value;
  group.go([there_read = std::move(there.read), back_write = std::move(back.write)]() mutable {
    std::array<std::byte, 16> buffer;
    for (;;) {
      const auto got = weft::io::read_some(there_read, buffer);
      if (got.error) return;
      (void)weft::io::write_all(back_write, std::span(buffer).first(got.value));
    }
  });
  std::array<std::byte, 16> buffer;
  while (!stop) {
    CHECK(!weft::io::write_all(there.write, "ping").error);
    const auto got = weft::io::read_some(back.read, buffer);
    CHECK(got.value == 4);
  }
}

// Runs fibers of all kinds; each counts its steps.
class Load {
 public:
  Load() {
    for (int i = 0; i < 8; ++i) {
      start({}, [] { yield(); });
      start({}, [] { weft::this_fiber::sleep_for(200us); });
      start({.pinned = true}, [] { weft::this_fiber::sleep_for(500us); });
      start({}, [] {
        const weft::this_fiber::Pin pin;
        const pid_t home = ::gettid();
        weft::this_fiber::sleep_for(100us);
        CHECK(::gettid() == home);
      });
      start({}, [this] {
        weft::WaitGroup children;
        for (int child = 0; child < 20; ++child) children.go([this] { ++done_; });
        children.wait();
      });
    }
    for (int i = 0; i < 4; ++i) group_.go([this] { echo(stop_, group_); });
  }
  // Ends all fibers.
  void end() {
    stop_ = true;
    group_.wait();
  }
  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  template <class Step>
  void start(weft::SpawnOptions options, Step step) {
    group_.add(1);
    weft::go(options, [this, step] {
      while (!stop_) {
        step();
        ++done_;
      }
      group_.done();
    });
  }

  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> done_{0};
  weft::WaitGroup group_;
};

// WEFT_ACTIVE_WORKERS_ROUNDS=100000 runs for some minutes.
TEST_CASE(
    "fibers continue after every kind of wait while the number of workers changes at random") {
  const TestGuard guard("all fibers run while the number of workers changes");
  const char* text = std::getenv("WEFT_ACTIVE_WORKERS_ROUNDS");
  const int rounds =
      text != nullptr ? std::atoi(text) : 60 / static_cast<int>(weft::test::kSlowdown);
  weft::test::Random random;
  std::atomic<unsigned> processors{3};
  weft::io::Poller events;
  Scheduler scheduler(following([&] { return processors.load(); }, 2), events);
  Load load;
  for (int round = 0; round < rounds; ++round) {
    processors = 1 + static_cast<unsigned>(random.below(kMost));
    // Some changes take effect before the next change, and some do not.
    const std::uint64_t target = load.done() + 1 + random.below(2000);
    while (load.done() < target) std::this_thread::yield();
  }
  load.end();
  scheduler.retire();
  CHECK(scheduler.shared().live() == 0);
}

TEST_SUITE_END();

}  // namespace
