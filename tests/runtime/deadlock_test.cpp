// Tests deadlocks, and situations that are not deadlocks. The cases do not use the fixture: its
// watchdog thread might wake a fiber, so no deadlock would be certain.
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/fiber_local.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "io/poller.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "tests/support/deadlock.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scheduler::Scheduler;

// Collects the reports and counts them.
struct Reports {
  std::atomic<int> count{0};
  std::string last;

  // Returns options for a runtime that stores its reports here, and then calls `then`.
  template <class Then>
  weft::RuntimeOptions options(unsigned workers, Then then) {
    return {.workers = workers, .on_deadlock = [this, then](std::string_view report) {
              last = report;
              ++count;
              then();
            }};
  }
  weft::RuntimeOptions options(unsigned workers) {
    return options(workers, [] {});
  }
};

// Ends a test that hangs; needs no thread for this.
struct Alarm {
  Alarm() { alarm(60 * weft::test::kSlowdown); }
  ~Alarm() { alarm(0); }
};

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Returns how often the workers of the newest runtime have searched for a deadlock.
std::uint64_t looks() {
  std::uint64_t count = 0;
  (void)weft::scheduler::visit_registry(weft::Deadline::never(), [&](Scheduler& scheduler) {
    count = scheduler.shared().deadlock_watch().looks();
  });
  return count;
}

#define SKIP_WITHOUT_VERDICTS()                 \
  if (!weft::test::kDeadlocksAreFound) {        \
    weft::test::skip(weft::test::kNoVerdict);   \
    return;                                     \
  }                                             \
  const weft::test::WithoutSignalHandlers bare; \
  const Alarm hangs_no_longer_than_a_minute

TEST_SUITE_BEGIN("runtime/deadlock");

TEST_CASE(
    "a deadlock is reported once, with all fiber names and call stacks, and the deadlock handler "
    "may resolve it") {
  SKIP_WITHOUT_VERDICTS();
  for (const unsigned workers : {1U, 2U, 8U}) {
    weft::Channel<int> channel;
    Reports reports;
    weft::run(reports.options(workers, [&] { channel.close(); }), [&] {
      for (int i = 0; i < 3; ++i) weft::go([&] { (void)channel.receive(); });
      CHECK(!channel.receive());
    });
    CHECK(reports.count.load() == 1);
    CHECK(holds(reports.last, "4 fibers"));
    CHECK(holds(reports.last, "'main' is parked: channel receive"));
    CHECK(holds(reports.last, "{lambda()#1}"));
    CHECK((weft::test::kSanitized || holds(reports.last, "    at ")));
  }
}

TEST_CASE(
    "a deadlock report shows the call stack of every parked fiber, and the fibers continue "
    "afterwards") {
  SKIP_WITHOUT_VERDICTS();
  weft::Semaphore semaphore(0);
  Reports reports;
  int sum = 0;
  weft::run(reports.options(2, [&] { semaphore.release(100); }), [&] {
    weft::WaitGroup group;
    std::atomic<int> passed{0};
    for (int i = 0; i < 100; ++i) {
      group.add();
      weft::go({.stack_size = std::size_t{16} << (i % 4 + 10)}, [&] {
        semaphore.acquire();
        ++passed;
        group.done();
      });
    }
    group.wait();
    sum = passed.load();
  });
  CHECK(sum == 100);
  CHECK(reports.count.load() == 1);
  if (!weft::test::kSanitized) {
    std::size_t calls = 0;
    for (std::size_t at = 0; (at = reports.last.find("    at ", at)) != std::string::npos; ++at) {
      ++calls;
    }
    CHECK(calls >= 3 * 101);
  }
}

TEST_CASE("a deadlock report includes the parent of a child that runs in place") {
  SKIP_WITHOUT_VERDICTS();
  weft::Channel<int> channel;
  Reports reports;
  bool in_place = false;
  // With one worker, no other worker runs the child first. Sometimes other fibers run first.
  weft::run(reports.options(1, [&] { channel.close(); }), [&] {
    while (!in_place) {
      const auto* mine = static_cast<const char*>(__builtin_frame_address(0));
      weft::spawn([&] {
        const auto* here = static_cast<const char*>(__builtin_frame_address(0));
        in_place = here < mine && mine - here < 16 << 10;
        if (in_place) CHECK(!channel.receive());
      }).join();
    }
  });
  CHECK(reports.count.load() == 1);
  CHECK(holds(reports.last, "2 fibers"));
}

TEST_CASE("a second deadlock is reported in the same way as the first deadlock") {
  SKIP_WITHOUT_VERDICTS();
  weft::Semaphore semaphore(0);
  Reports reports;
  weft::run(reports.options(2, [&] { semaphore.release(); }), [&] {
    semaphore.acquire();
    semaphore.acquire();
  });
  CHECK(reports.count.load() == 2);
}

TEST_CASE("calls made by a deadlock handler behave as on a plain thread") {
  SKIP_WITHOUT_VERDICTS();
  weft::Semaphore semaphore(0);
  Reports reports;
  int steps = 0;
  static weft::FiberLocal<int> local;
  const auto handler = [&] {
    if (!weft::this_fiber::is_fiber()) ++steps;
    if (weft::this_fiber::id() == 0) ++steps;
    if (weft::this_fiber::name().empty()) ++steps;
    weft::this_fiber::set_name("nobody");
    const weft::this_fiber::NoSwitch no_switch;
    weft::this_fiber::yield();
    steps += weft::blocking([] { return 1; });
    local.get() = 1;
    weft::go([&] { ++steps; });
    semaphore.release();
  };
  for (const unsigned workers : {1U, 2U}) {
    steps = 0;
    weft::run(reports.options(workers, handler), [&] { semaphore.acquire(); });
    CHECK(steps == 5);
  }
  CHECK(reports.count.load() == 2);
}

TEST_CASE("fibers that can never continue are reported as a deadlock when their runtime ends") {
  SKIP_WITHOUT_VERDICTS();
  weft::Semaphore semaphore(0);
  Reports reports;
  {
    weft::Runtime runtime(reports.options(2, [&] { semaphore.release(); }));
    runtime.go([&] { semaphore.acquire(); });
  }
  CHECK(reports.count.load() == 1);
}

TEST_CASE("a deadlock report includes plain threads that wait for fibers forever") {
  SKIP_WITHOUT_VERDICTS();
  weft::Semaphore semaphore(0);
  Reports reports;
  {
    weft::Runtime runtime(reports.options(2, [&] { semaphore.release(3); }));
    std::thread one([&] { semaphore.acquire(); });
    std::thread other([&] { runtime.run([&] { semaphore.acquire(); }); });
    semaphore.acquire();
    // Up to here, all waits are untimed waits of the library. join() is not, but all fibers are
    // awake by then.
    one.join();
    other.join();
  }
  CHECK(reports.count.load() == 1);
}

TEST_CASE("a sleeping fiber prevents a deadlock report") {
  Reports reports;
  weft::run(reports.options(2), [&] {
    weft::WaitGroup group;
    group.add();
    weft::go([&] {
      while (looks() < 1) weft::this_fiber::sleep_for(300ms);
      group.done();
    });
    group.wait();
  });
  CHECK(reports.count.load() == 0);
}

TEST_CASE("a fiber that waits for a descriptor prevents a deadlock report") {
  Reports reports;
  weft::run(reports.options(2), [&] {
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    weft::io::IoHandle* handle = nullptr;
    weft::io::Poller& poller = weft::io::current_poller();
    REQUIRE(!poller.add(timer, handle));
    // Only the kernel can end these waits.
    while (looks() < 1) {
      const itimerspec in_a_while{{}, {0, 300'000'000}};
      timerfd_settime(timer, 0, &in_a_while, nullptr);
      CHECK(handle->wait_readable(weft::Deadline::never()) == weft::io::WaitOutcome::ready);
      std::uint64_t expired = 0;
      (void)!read(timer, &expired, sizeof expired);
    }
    poller.remove(*handle);
  });
  CHECK(reports.count.load() == 0);
}

TEST_CASE("a running plain thread prevents a deadlock report") {
  Reports reports;
  weft::run(reports.options(2), [&] {
    weft::Channel<int> channel;
    std::thread sender([&] {
      while (looks() < 1) std::this_thread::sleep_for(10ms);
      (void)channel.send(1);
    });
    CHECK(channel.receive() == 1);
    sender.join();
  });
  CHECK(reports.count.load() == 0);
}

TEST_CASE("a plain thread that waits with a deadline prevents a deadlock report") {
  Reports reports;
  weft::run(reports.options(2), [&] {
    weft::Channel<int> channel;
    weft::Semaphore semaphore(0);
    std::thread sender([&] {
      while (looks() < 1) (void)semaphore.try_acquire_for(300ms);
      (void)channel.send(1);
    });
    CHECK(channel.receive() == 1);
    sender.join();
  });
  CHECK(reports.count.load() == 0);
}

TEST_CASE("a second runtime prevents a deadlock report") {
  Reports reports;
  weft::Runtime other({.workers = 1});
  weft::run(reports.options(1), [&] {
    weft::Semaphore semaphore(0);
    other.go([&] {
      while (looks() < 1) weft::this_fiber::sleep_for(300ms);
      semaphore.release();
    });
    semaphore.acquire();
  });
  CHECK(reports.count.load() == 0);
}

TEST_CASE("when a worker becomes inactive, another worker takes over the search for deadlocks") {
  const weft::test::TestGuard guard("a worker that leaves passes the search for deadlocks on");
  std::atomic<unsigned> processors{2};
  weft::scheduler::SchedulerOptions options;
  options.workers = 2;
  options.processors = {
      .count = [&] { return processors.load(); }, .most_workers = 2, .period = 0ns};
  options.max_fibers = 1000;
  options.report_overflow = false;
  options.monitor.spares = 0;
  weft::io::Poller events;
  Scheduler scheduler(std::move(options), events);
  auto& shared = scheduler.shared();
  do {  // Until worker 1 was the last to fall asleep; an unpark alone does not change the order.
    weft::WaitGroup group;
    for (int i = 0; i < 2; ++i) {
      group.add();
      weft::go({.pinned = true}, [&] { group.done(); });
    }
    group.wait();
    while (!shared.is_asleep(shared.desk(0)) || !shared.is_asleep(shared.desk(1)))
      std::this_thread::yield();
  } while (!shared.deadlock_watch().is_on_watch(1));
  processors = 1;
  (void)shared.active().want(1);  // The monitor does this unless it sleeps.
  while (!shared.desk(1).is_resting()) shared.desk(1).unpark();
  while (!shared.deadlock_watch().is_on_watch(0)) std::this_thread::yield();
  scheduler.retire();
}

TEST_SUITE_END();

}  // namespace
