// Tests to which of several runtimes plain threads spawn. Once, they spawned to the newest runtime:
// fibers of an application were spawned in a library's short-lived runtime, and were lost with it.
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

TEST_CASE(
    "a plain thread spawns in the first runtime, no matter how many runtimes are made later") {
  const weft::test::TestGuard guard("first runtime");
  weft::Event stop;  // Outlives the runtime, whose end waits for the fiber.
  Runtime first({.workers = 1});
  {
    Runtime second({.workers = 1});
    weft::go([&] { stop.wait(); });
    CHECK(spawned(first) == 1);
    CHECK(spawned(second) == 0);
    // The second runtime can end, although the fiber continues.
  }
  stop.set();
}

TEST_CASE("a RuntimeScope binds the calling thread to a runtime, and scopes can be nested") {
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
      // A fiber's children belong to its runtime, whatever scope the fiber makes.
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

TEST_CASE("fibers that a plain thread spawns run while runtimes are made and destroyed") {
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
          ++refused;  // No runtime existed then.
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

TEST_CASE(
    "a delayed call runs in the runtime in which it was scheduled even if the first runtime "
    "changes") {
  const weft::test::TestGuard guard("delayed calls");
  std::atomic<bool> stop{false};
  std::atomic<unsigned> made{0};
  std::atomic<unsigned> set{0};
  std::atomic<unsigned> ended{0};
  std::vector<std::thread> runtimes;
  // Two runtimes end alternately, so that there is a different runtime each time, and usually one.
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
    } catch (const std::system_error&) {  // No runtime existed then.
    }
  }
  stop = true;
  for (auto& runtime : runtimes) runtime.join();  // The runtimes end, and with them all calls.
  CHECK(made == set);
}

TEST_CASE(
    "fibers that a plain thread spawns run in the first runtime while other runtimes are made and "
    "destroyed") {
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
