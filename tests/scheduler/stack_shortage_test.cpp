// Tests fibers for which the system has no stack: they wait in a separate list, and get stacks in
// their order.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/latch.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>

#include "scheduler/scheduler.hpp"
#include "tests/support/child.hpp"

namespace {

using namespace std::chrono_literals;

// The stack size of the fibers that must get no stack. No other fiber here uses this size.
constexpr std::size_t kLarge = std::size_t{1} << 20;
// The remaining address space has room for some 50 of these stacks.
constexpr std::size_t kLeft = std::size_t{256} << 20;
constexpr int kMany = 2'000;

void set_limit(rlim_t limit) {
  rlimit changed{};
  if (getrlimit(RLIMIT_AS, &changed) != 0) std::abort();
  changed.rlim_cur = limit;
  if (setrlimit(RLIMIT_AS, &changed) != 0) std::abort();
}

void leave_address_space(std::size_t bytes) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  set_limit(pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + bytes);
}

// Waits until all threads have started.
void settle(weft::Runtime& runtime) {
  weft::Latch all_there(runtime.workers());
  for (unsigned i = 0; i < runtime.workers(); ++i) {
    weft::go({.pinned = true}, [&] { all_there.arrive_and_wait(); });
  }
  (void)runtime.wait_idle_for(20s);
}

// Runs in the child: if `holds` is false, ends the child and reports the line.
void expect(bool holds, int line) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d does not hold\n", __FILE__, line);
  _exit(1);
}
#define EXPECT(condition) expect(condition, __LINE__)

template <class Condition>
void wait_until(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(1ms);
}

// Runs more fibers than there are large stacks. Each fiber holds its stack until it is released.
struct Crowd {
  explicit Crowd(weft::Runtime& owner) : runtime(owner) {}

  void spawn(int count, bool pinned = false) {
    for (int i = 0; i < count; ++i) {
      weft::go({.stack_size = kLarge, .pinned = pinned}, [this] {
        ++started;
        let_go.acquire();
        if (as_it_ends) as_it_ends();
        ++ended;
      });
    }
    spawned += count;
  }
  // Waits until each fiber has a stack, or is registered as lacking one.
  void settle() const {
    wait_until([this] {
      return runtime.stats().without_stack + static_cast<unsigned>(started) ==
             static_cast<unsigned>(spawned);
    });
  }
  [[nodiscard]] int without_stack() const {
    return static_cast<int>(runtime.stats().without_stack);
  }

  weft::Runtime& runtime;
  weft::Semaphore let_go{0};
  std::function<void()> as_it_ends;
  std::atomic<int> started{0};
  std::atomic<int> ended{0};
  int spawned = 0;
};

template <class Body>
void for_each_number_of_workers(Body body) {
  if (weft::test::kSanitized || weft::test::kEmulated) {
    return weft::test::skip("sanitizers and the emulator need more addresses");
  }
  for (const unsigned workers : {1U, 2U, 3U, 8U}) {
    CAPTURE(workers);
    CHECK(weft::test::status_of_child([&]() noexcept {
            // Arenas of threads would reserve addresses at any time.
            (void)mallopt(M_ARENA_MAX, 1);
            alarm(20 * weft::test::kSlowdown);
            body(workers);
            return 0;
          }) == 0);
  }
}

// Like for_each_number_of_workers(), but `body` gets a runtime and a crowd that needs more address
// space than there is.
template <class Body>
void with_crowd(weft::RuntimeOptions options, Body body) {
  for_each_number_of_workers([&](unsigned workers) {
    options.workers = workers;
    weft::Runtime runtime(options);
    settle(runtime);
    leave_address_space(kLeft);
    Crowd crowd(runtime);
    body(runtime, crowd);
  });
}

TEST_SUITE_BEGIN("scheduler/stack_shortage");

TEST_CASE("fibers that wait for a stack are in no run queue, and all of them finally run") {
  with_crowd({}, [](weft::Runtime& runtime, Crowd& crowd) {
    crowd.spawn(kMany);
    crowd.settle();
    EXPECT(crowd.without_stack() > kMany / 2);
    EXPECT(runtime.stats().live == kMany);
    weft::scheduler::Scheduler& scheduler = *weft::scheduler::Scheduler::current();
    EXPECT(!scheduler.shared().has_work_hint());
    EXPECT(!runtime.wait_idle_for(20ms));
    crowd.let_go.release(kMany);
    EXPECT(runtime.wait_idle_for(20s));
    EXPECT(crowd.ended == kMany);
    EXPECT(crowd.without_stack() == 0);
    EXPECT(runtime.stats().live == 0);
  });
}

TEST_CASE("a yielding fiber causes no extra fiber switches when other fibers wait for a stack") {
  with_crowd({.monitor = false}, [](weft::Runtime& runtime, Crowd& crowd) {
    crowd.spawn(kMany);
    crowd.settle();
    constexpr std::uint64_t kYields = 1'000;
    const std::uint64_t before = runtime.stats().switches;
    runtime.run([] {
      // Two fibers yield to each other.
      std::atomic<bool> done{false};
      weft::JoinHandle other = weft::spawn([&done] {
        while (!done) weft::this_fiber::yield();
      });
      for (std::uint64_t i = 0; i < kYields; ++i) weft::this_fiber::yield();
      done = true;
      other.join();
    });
    EXPECT(crowd.without_stack() > 0);
    // With several workers, the other fiber yields independently.
    if (runtime.workers() == 1) EXPECT(runtime.stats().switches - before < 3 * kYields);
    crowd.let_go.release(kMany);
  });
}

TEST_CASE("a free stack goes to the fiber that has waited longest for a stack") {
  with_crowd({}, [](weft::Runtime& runtime, Crowd& crowd) {
    crowd.spawn(kMany);
    crowd.settle();
    Crowd newer(runtime);
    newer.spawn(kMany);
    // Each fiber is registered as lacking a stack, or was started on a cached stack of its worker.
    wait_until([&] { return crowd.without_stack() + crowd.started + newer.started == 2 * kMany; });
    const int early = newer.started;
    const int waited = crowd.spawned - crowd.started;
    crowd.let_go.release(static_cast<std::uint64_t>(waited - 1));
    // `waited` - 1 fibers have ended: each of their stacks was passed on to a fiber of the crowd.
    wait_until([&] { return crowd.ended == waited - 1; });
    // Each other worker may have been preempted before it listed a fiber that it had counted. It
    // may also have slept with cached stacks, which it passes on when it wakes.
    constexpr int kAtHand = 8;
    const int others = static_cast<int>(runtime.workers()) - 1;
    wait_until([&] { return crowd.started >= crowd.spawned - 1 - others; });
    EXPECT(newer.started - early <= (1 + kAtHand) * others);
    crowd.let_go.release(kMany);
    newer.let_go.release(kMany);
    EXPECT(runtime.wait_idle_for(20s));
    EXPECT(newer.ended == kMany);
  });
}

TEST_CASE("waiting fibers get stacks even if each fiber spawns another fiber when it ends") {
  with_crowd({}, [](weft::Runtime& runtime, Crowd& crowd) {
    // Each fiber spawns the next one until the whole crowd has started.
    struct Chain {
      Crowd& crowd;
      void operator()() const {
        if (crowd.started < crowd.spawned) weft::go({.stack_size = kLarge}, Chain{crowd});
      }
    };
    crowd.as_it_ends = [&crowd] { Chain{crowd}(); };
    crowd.spawn(kMany);
    crowd.settle();
    const int with_stack = crowd.started;
    crowd.let_go.release(static_cast<std::uint64_t>(with_stack));
    wait_until([&] { return crowd.started >= 2 * with_stack; });
    crowd.let_go.release(kMany);
    EXPECT(runtime.wait_idle_for(20s));
    EXPECT(crowd.ended == kMany);
  });
}

TEST_CASE("fibers that wait for a stack start when the system provides stacks again") {
  for_each_number_of_workers([](unsigned workers) {
    weft::Runtime runtime({.workers = workers});
    settle(runtime);
    leave_address_space(kLeft / 4);  // Too little for four stacks of the largest size.
    std::atomic<int> ended{0};
    for (int i = 0; i < 20; ++i) {
      weft::go({.stack_size = 16 * kLarge, .pinned = i % 2 == 0}, [&] { ++ended; });
    }
    wait_until([&] { return runtime.stats().without_stack == 20; });
    EXPECT(ended == 0);
    set_limit(RLIM_INFINITY);
    EXPECT(runtime.wait_idle_for(20s));
    EXPECT(ended == 20);
  });
}

TEST_CASE("a pinned fiber that waits for a stack gets the stack of any fiber that ends") {
  with_crowd({}, [](weft::Runtime& runtime, Crowd& crowd) {
    crowd.spawn(500);
    crowd.settle();
    crowd.spawn(200, true);
    crowd.spawn(200, false);
    crowd.settle();
    EXPECT(crowd.without_stack() > 600);
    crowd.let_go.release(static_cast<std::uint64_t>(crowd.spawned));
    EXPECT(runtime.wait_idle_for(20s));
    EXPECT(crowd.ended == crowd.spawned);
  });
}

TEST_CASE("a spawn is refused while a fiber waits for a stack if refuse_without_stacks is set") {
  with_crowd({.refuse_without_stacks = true}, [](weft::Runtime& runtime, Crowd& crowd) {
    bool refused = false;
    try {
      for (int i = 0;; ++i) {
        crowd.spawn(1);
        // Lets the workers run the fibers.
        if (i % 100 == 0) std::this_thread::sleep_for(1ms);
      }
    } catch (const std::system_error& refusal) {
      refused = refusal.code() == weft::Errc::too_many_fibers;
    }
    EXPECT(refused);
    crowd.let_go.release(static_cast<std::uint64_t>(crowd.spawned));
    EXPECT(runtime.wait_idle_for(20s));
    EXPECT(crowd.ended == crowd.spawned);
    // Stacks are available again.
    bool accepted = false;
    weft::spawn([&] { accepted = true; }).join();
    EXPECT(accepted);
  });
}

TEST_SUITE_END();

}  // namespace
