// Fibers for which the system has no stack: they wait apart, and are served in their order.
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

// Of the fibers that are to find no stack. Stacks of this size are used by no other fiber here.
constexpr std::size_t kLarge = std::size_t{1} << 20;
// As much address space as is left leads to stacks for some 50 of them.
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

// All threads have started.
void settle(weft::Runtime& runtime) {
  weft::Latch all_there(runtime.workers());
  for (unsigned i = 0; i < runtime.workers(); ++i) {
    weft::go({.pinned = true}, [&] { all_there.arrive_and_wait(); });
  }
  (void)runtime.wait_idle_for(20s);
}

// In the child: what does not hold ends it, with the line.
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

// Fibers that hold a large stack each until they are let go, and more of them than there are
// stacks.
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
  // Each has a stack, or has been found to lack one.
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
  if (weft::test::kSanitized || weft::test::kEmulated) return;  // They need more addresses.
  for (const unsigned workers : {1U, 2U, 3U, 8U}) {
    CAPTURE(workers);
    CHECK(weft::test::status_of_child([&]() noexcept {
            // The threads' own arenas would take addresses at any time.
            (void)mallopt(M_ARENA_MAX, 1);
            alarm(20 * weft::test::kSlowdown);
            body(workers);
            return 0;
          }) == 0);
  }
}

// The same with a runtime of that number of workers, and a crowd in it for which there is too
// little address space.
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

TEST_CASE("fibers that wait for a stack are in no run queue and no count is lost") {
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

TEST_CASE("a fiber that yields switches no more often because fibers wait for a stack") {
  with_crowd({.monitor = false}, [](weft::Runtime& runtime, Crowd& crowd) {
    crowd.spawn(kMany);
    crowd.settle();
    constexpr std::uint64_t kYields = 1'000;
    const std::uint64_t before = runtime.stats().switches;
    runtime.run([] {
      // Two that yield to each other.
      std::atomic<bool> done{false};
      weft::JoinHandle other = weft::spawn([&done] {
        while (!done) weft::this_fiber::yield();
      });
      for (std::uint64_t i = 0; i < kYields; ++i) weft::this_fiber::yield();
      done = true;
      other.join();
    });
    EXPECT(crowd.without_stack() > 0);
    // On several workers the other one yields at its own pace.
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
    // Each has been found to lack one, or was started on one that its worker had at hand.
    wait_until([&] { return crowd.without_stack() + crowd.started + newer.started == 2 * kMany; });
    const int early = newer.started;
    const int waited = crowd.spawned - crowd.started;
    crowd.let_go.release(static_cast<std::uint64_t>(waited - 1));
    // As many have ended as waited but one: each of their stacks was passed on to one of the crowd.
    wait_until([&] { return crowd.ended == waited - 1; });
    // Each other worker may have been stopped before it listed one of the crowd that it had
    // counted, and may have been asleep with stacks at hand, which it passes on when it gets up.
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

TEST_CASE("fibers that spawn at their end do not withhold their stacks from waiting fibers") {
  with_crowd({}, [](weft::Runtime& runtime, Crowd& crowd) {
    // Each spawns the next until the whole crowd has started.
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

TEST_CASE("fibers that wait for a stack start when the system has stacks again") {
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

TEST_CASE("a pinned fiber that waits for a stack is served by the end of any other fiber") {
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

TEST_CASE("spawns are refused while a fiber waits for a stack, if the options request that") {
  with_crowd({.refuse_without_stacks = true}, [](weft::Runtime& runtime, Crowd& crowd) {
    bool refused = false;
    try {
      for (int i = 0;; ++i) {
        crowd.spawn(1);
        // So that the workers get to them.
        if (i % 100 == 0) std::this_thread::sleep_for(1ms);
      }
    } catch (const std::system_error& refusal) {
      refused = refusal.code() == weft::Errc::too_many_fibers;
    }
    EXPECT(refused);
    crowd.let_go.release(static_cast<std::uint64_t>(crowd.spawned));
    EXPECT(runtime.wait_idle_for(20s));
    EXPECT(crowd.ended == crowd.spawned);
    // There are stacks again.
    bool accepted = false;
    weft::spawn([&] { accepted = true; }).join();
    EXPECT(accepted);
  });
}

TEST_SUITE_END();

}  // namespace
