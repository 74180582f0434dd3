// To which runtime plain threads spawn when there are several. The newest was it once: fibers of an
// application ended up in a runtime that a library had made for a moment, and were lost with it.
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/timer.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using weft::Runtime;
using weft::RuntimeScope;
using weft::test::kSlowdown;

std::uint64_t spawned(const Runtime& runtime) { return runtime.stats().spawned; }

TEST_SUITE_BEGIN("runtime/current_runtime");

TEST_CASE("a plain thread spawns to the first runtime, however many follow") {
  const weft::test::TestGuard guard("first runtime");
  weft::Event stop;  // Outlives the runtime, whose end waits for the fiber.
  Runtime first({.workers = 1});
  {
    Runtime second({.workers = 1});
    weft::go([&] { stop.wait(); });
    CHECK(spawned(first) == 1);
    CHECK(spawned(second) == 0);
    // The second one can end, although the fiber goes on.
  }
  stop.set();
}

TEST_CASE("a scope binds the calling thread to a runtime, and scopes nest") {
  const weft::test::TestGuard guard("scope");
  Runtime first({.workers = 1});
  Runtime second({.workers = 1});
  Runtime third({.workers = 1});
  {
    const RuntimeScope outer(third);
    weft::spawn([] {}).join();
    {
      const RuntimeScope inner(second);
      weft::spawn([] {}).join();
      std::thread([] { weft::spawn([] {}).join(); }).join();
      // A fiber's children are its runtime's, whatever scope it makes.
      first.run([&] {
        const RuntimeScope none(second);
        weft::spawn([] {}).join();
      });
    }
    weft::spawn([] {}).join();
  }
  weft::spawn([] {}).join();
  CHECK(spawned(third) == 2);
  CHECK(spawned(second) == 1);
  CHECK(spawned(first) == 4);
}

TEST_CASE("fibers spawned by a plain thread run while runtimes come and go") {
  const weft::test::TestGuard guard("come and go");
  std::atomic<bool> stop{false};
  std::atomic<int> refused{0};
  std::atomic<int> joined{0};
  std::vector<std::thread> spawners;
  for (int i = 0; i < 2; ++i) {
    spawners.emplace_back([&] {
      while (!stop) {
        try {
          joined += weft::spawn([] { return 1; }).join();
        } catch (const std::system_error&) {
          ++refused;  // None existed at that moment.
          std::this_thread::yield();
        }
      }
    });
  }
  for (unsigned i = 0; i < 300 / kSlowdown || joined == 0; ++i) {
    Runtime brief({.workers = 1});
    brief.run([] {});
  }
  stop = true;
  for (auto& spawner : spawners) spawner.join();
  CHECK(joined > 0);
}

TEST_CASE("a delayed call and its timer keep their runtime when the first runtime changes") {
  const weft::test::TestGuard guard("delayed calls");
  std::atomic<bool> stop{false};
  std::atomic<unsigned> made{0};
  std::atomic<unsigned> set{0};
  std::atomic<unsigned> ended{0};
  std::vector<std::thread> runtimes;
  // Two that end in turns, so that there is always another one, and mostly one.
  for (int i = 0; i < 2; ++i) {
    runtimes.emplace_back([&] {
      while (!stop) {
        Runtime({.workers = 1}).run([] {});
        ++ended;
      }
    });
  }
  while (ended < 300 / kSlowdown || made == 0) {
    try {
      (void)weft::call_after(std::chrono::microseconds(50), [&] { ++made; });
      ++set;
    } catch (const std::system_error&) {  // None existed at that moment.
    }
  }
  stop = true;
  for (auto& runtime : runtimes) runtime.join();  // They end, and with them all calls.
  CHECK(made == set);
}

TEST_CASE("runtimes that come and go get no fibers of a runtime that stays") {
  const weft::test::TestGuard guard("one stays");
  Runtime stays({.workers = 2});
  std::atomic<bool> stop{false};
  std::atomic<unsigned> joined{0};
  std::thread spawner([&] {
    while (!stop) joined += weft::spawn([] { return 1U; }).join();
  });
  for (unsigned i = 0; i < 200 / kSlowdown; ++i) {
    Runtime brief({.workers = 1});
    brief.run([] {});
    CHECK(spawned(brief) == 1);
  }
  stop = true;
  spawner.join();
  CHECK(spawned(stays) == joined);
}

TEST_SUITE_END();

}  // namespace
