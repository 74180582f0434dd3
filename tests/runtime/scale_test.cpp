// Tests sleeps, counts, and very many fibers.
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::test::kSlowdown;

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_SUITE_BEGIN("runtime/scale");

THREAD_TEST_CASE("a sleep of a fiber or a plain thread never ends early") {
  const auto check = [](std::uint64_t stream) {
    weft::test::Random random(stream);
    for (int i = 0; i < 30; ++i) {
      const Deadline deadline = Deadline::after(std::chrono::nanoseconds(random.below(500'000)));
      weft::this_fiber::sleep_until(deadline);
      if (!deadline.passed()) FAIL_CHECK("too short");
    }
    weft::this_fiber::sleep_for(0ns);
    weft::this_fiber::sleep_for(-1h);
    weft::this_fiber::sleep_until(std::chrono::steady_clock::now());
  };
  check(1000);
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::uint64_t i = 0; i < 50; ++i) fibers.push_back(weft::spawn([&, i] { check(i); }));
}

FIBER_TEST_CASE_WITH("sleepers with different deadlines all wake, and no sleeper wakes too early",
                     {.workers = {1}}) {
  std::vector<weft::JoinHandle<void>> fibers;
  // All deadlines count from one start, so that only the time between them matters, not the order
  // of the spawns. (The order of wakes proves nothing: if the machine stops for a long time,
  // several sleeps end at once.)
  const auto start = std::chrono::steady_clock::now();
  for (const int place : {3, 0, 2, 4, 1}) {
    fibers.push_back(weft::spawn([place, start] {
      const auto time = start + (place + 1) * 3ms;
      weft::this_fiber::sleep_until(time);
      CHECK(std::chrono::steady_clock::now() >= time);
    }));
  }
  for (auto& fiber : fibers) fiber.join();
  CHECK(std::chrono::steady_clock::now() - start >= 15ms);
}

FIBER_TEST_CASE("a hundred thousand fibers can park and be woken") {
  const std::uint32_t count = kSlowdown > 1 ? 2'000 : 100'000;
  weft::Semaphore gate(0);
  weft::WaitGroup parked;
  weft::WaitGroup done;
  parked.add(count);
  done.add(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    weft::go({.stack_size = 16 << 10}, [&] {
      parked.done();
      gate.acquire();
      done.done();
    });
  }
  parked.wait();
  CHECK(runtime.stats().live == count + 1);
  gate.release(count);
  done.wait();
}

FIBER_TEST_CASE_WITH("fibers that have not started use no stacks", {.workers = {1}}) {
  const auto before = runtime.stats();
  constexpr int kCount = 20'000;
  std::atomic<int> ran{0};
  for (int i = 0; i < kCount; ++i) weft::go([&] { ++ran; });
  CHECK(runtime.stats().stacks_carved - before.stacks_carved <= 64);
  while (ran < kCount) weft::this_fiber::yield();
  // Each fiber ran to its end before the next one started.
  CHECK(runtime.stats().stacks_carved - before.stacks_carved <= 64);
}

// There are no spare workers, however busy the machine is, because each of them keeps stacks.
THREAD_TEST_CASE_WITH(
    "Runtime::trim() frees the memory of finished fibers, and later fibers reuse the memory",
    {.workers = {2}, .options = {.max_spare_workers = 0}}) {
  const std::uint32_t count = 20'000 / kSlowdown;
  const auto burst = [&] {
    weft::Semaphore gate(0);
    weft::WaitGroup parked;
    weft::WaitGroup done;
    parked.add(count);
    done.add(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      weft::go([&] {
        parked.done();
        gate.acquire();
        done.done();
      });
    }
    parked.wait();
    const std::size_t most = resident_bytes();
    gate.release(count);
    done.wait();
    return most;
  };
  const std::size_t most = runtime.run(burst);
  CHECK(runtime.wait_idle_for(60s));
  // Each worker may keep two chains for itself.
  while (runtime.stats().stacks_resident > 64 * (runtime.workers() + 1)) runtime.trim();
  const auto stats = runtime.stats();
  // Blocks of cold stacks beyond these lose their page tables, and with them their guards.
  constexpr std::uint64_t kKeepTables = 16'384;
  CHECK(stats.stacks_carved >= std::min<std::uint64_t>(count, kKeepTables));
  // Each stack used at least one page of 4 KiB; a sanitizer's own memory does not shrink.
  if (!weft::test::kSanitized) CHECK(resident_bytes() + count * 3000 < most);
  // A second burst reuses the memory and needs no further stacks.
  runtime.run(burst);
  CHECK(runtime.stats().stacks_carved <=
        std::max<std::uint64_t>(stats.stacks_carved, count) + 64 * (runtime.workers() + 1));
}

THREAD_TEST_CASE_WITH("idle workers free the memory of finished fibers automatically",
                      {.workers = {2}}) {
  const std::uint32_t count = 5'000 / kSlowdown;
  runtime.run([&] {
    weft::Semaphore gate(0);
    weft::WaitGroup parked;
    weft::WaitGroup done;
    parked.add(count);
    done.add(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      weft::go([&] {
        parked.done();
        gate.acquire();
        done.done();
      });
    }
    parked.wait();
    gate.release(count);
    done.wait();
  });
  // No time is promised, but the memory is freed eventually; the test's deadline bounds the wait.
  // The case does not wait until spare workers leave, which keep some stacks until then.
  const auto few = [&runtime] {
    const weft::RuntimeStats stats = runtime.stats();
    return stats.stacks_resident <= 64 * (runtime.workers() + stats.spare_workers + 1);
  };
  while (!few()) {
    std::this_thread::sleep_for(5ms);
  }
}

THREAD_TEST_CASE("the statistics of a runtime are exact while no fiber runs") {
  const auto before = runtime.stats();
  CHECK(before.workers == runtime.workers());
  CHECK(before.live == 0);
  runtime.run([] {
    for (int i = 0; i < 99; ++i) weft::go([] { weft::this_fiber::yield(); });
  });
  CHECK(runtime.wait_idle_for(60s));
  const auto after = runtime.stats();
  CHECK(after.spawned == before.spawned + 100);
  CHECK(after.finished == before.finished + 100);
  CHECK(after.live == 0);
  CHECK(after.switches >= before.switches + 100);
  CHECK(after.record_bytes > 0);
  CHECK(after.stacks_resident <= after.stacks_carved);
}

TEST_SUITE_END();

}  // namespace
