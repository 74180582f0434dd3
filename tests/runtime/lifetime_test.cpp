// Tests the start and end of one runtime, of several, and of a thousand in a row.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Runtime;
using weft::test::kSlowdown;
using weft::test::TestGuard;

TEST_SUITE_BEGIN("runtime/lifetime");

TEST_CASE("run() returns the result of its function") {
  const TestGuard guard("run");
  CHECK(weft::run([] { return 5; }) == 5);
  CHECK(weft::run({.workers = 1}, [] { return std::string("text"); }) == "text");
  CHECK(*weft::run([] { return std::make_unique<int>(6); }) == 6);
  CHECK_THROWS_WITH_AS(weft::run([] { throw std::runtime_error("from main"); }), "from main",
                       std::runtime_error);
}

TEST_CASE("run() waits for all fibers, not only for its function") {
  const TestGuard guard("run waits");
  std::atomic<int> ended{0};
  weft::run({.workers = 2}, [&] {
    for (int i = 0; i < 10; ++i) {
      weft::go([&] {
        weft::this_fiber::sleep_for(2ms);
        weft::go([&] { ended.fetch_add(1); });
      });
    }
  });
  CHECK(ended.load() == 10);
}

TEST_CASE("a runtime can be started and stopped a thousand times") {
  const TestGuard guard("a thousand runtimes");
  int sum = 0;
  for (int i = 0; i < 1'000 / static_cast<int>(kSlowdown); ++i) {
    const unsigned workers = 1 + static_cast<unsigned>(i) % 4;
    switch (i % 3) {
      case 0: {
        const Runtime unused({.workers = workers});
        sum += 1;
        break;
      }
      case 1:
        sum += weft::run({.workers = workers}, [] { return 1; });
        break;
      default:
        sum += weft::run({.workers = workers}, [] {
          weft::WaitGroup group;
          group.add(10);
          for (int n = 0; n < 10; ++n) weft::go([&] { group.done(); });
          group.wait();
          return 1;
        });
    }
  }
  CHECK(sum == 1'000 / static_cast<int>(kSlowdown));
}

TEST_CASE("the oldest of several runtimes is the current runtime") {
  const TestGuard guard("nested");
  Runtime outer({.workers = 1});
  {
    Runtime inner({.workers = 2});
    weft::spawn([] {}).join();
    CHECK(inner.stats().spawned == 0);
    CHECK(outer.stats().spawned == 1);
    inner.run([] { weft::spawn([] {}).join(); });  // A fiber spawns where it runs.
    CHECK(outer.stats().spawned == 1);
    CHECK(inner.stats().spawned == 2);
  }
  weft::spawn([] {}).join();
  CHECK(outer.stats().spawned == 2);
}

TEST_CASE("fibers of two runtimes exchange values through a channel") {
  const TestGuard guard("two runtimes");
  weft::Channel<int> there;
  weft::Channel<int> back(2);
  Runtime first({.workers = 2});
  Runtime second({.workers = 2});
  const int rounds = 2'000 / static_cast<int>(kSlowdown);
  second.go([&] {
    while (const auto value = there.receive()) (void)back.send(*value + 1);
    back.close();
  });
  first.run([&] {
    for (int i = 0; i < rounds; ++i) {
      CHECK(there.send(i));
      CHECK(back.receive() == i + 1);
    }
    there.close();
  });
}

TEST_CASE("a fiber may spawn a fiber in another runtime and join it") {
  const TestGuard guard("across");
  Runtime first({.workers = 1});
  Runtime second({.workers = 1});
  const int result = first.run([&] { return second.run([] { return 8; }); });
  CHECK(result == 8);
}

TEST_CASE("the ids of all fibers in all runtimes of a process are unique") {
  const TestGuard guard("ids");
  std::set<std::uint64_t> ids;
  std::mutex mutex;
  std::size_t fibers = 0;
  const auto note = [&] {
    const std::lock_guard lock(mutex);
    ids.insert(weft::this_fiber::id());
  };
  const auto start_some = [&](Runtime& runtime) {
    for (int i = 0; i < 100; ++i) runtime.go(note);
    fibers += 100;
    CHECK(runtime.wait_idle_for(60s));
  };
  Runtime first({.workers = 2});
  start_some(first);
  {
    Runtime second({.workers = 1});
    start_some(second);
    start_some(first);
  }
  Runtime third({.workers = 3});
  start_some(third);
  CHECK(ids.size() == fibers);
  CHECK(ids.count(0) == 0);
}

TEST_CASE("wait_idle_for() returns at its deadline and lists the remaining fibers") {
  TestGuard guard("survivors");
  Runtime runtime({.workers = 2});
  weft::Channel<int> channel;
  runtime.go([&] { (void)channel.receive(); });
  const auto parked = [&] {
    std::ostringstream dump;
    runtime.dump(dump);
    return dump.str().find("channel receive") != std::string::npos;
  };
  while (!parked()) std::this_thread::yield();
  const auto deadline = weft::Deadline::after(5ms);
  // Redirects stderr to a file.
  FILE* caught = std::tmpfile();
  REQUIRE(caught != nullptr);
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(caught), STDERR_FILENO);
  const bool idle = runtime.wait_idle_until(deadline);
  dup2(saved, STDERR_FILENO);
  close(saved);
  CHECK(!idle);
  CHECK(deadline.passed());
  std::rewind(caught);
  std::string text(10'000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), caught));
  std::fclose(caught);
  CHECK(text.find("1 fiber") != std::string::npos);
  CHECK(text.find("channel receive") != std::string::npos);
  channel.close();
  CHECK(runtime.wait_idle_for(60s));
}

TEST_CASE(
    "a runtime may end before a plain thread has returned from the call that woke its last fiber") {
  const TestGuard guard("late waker");
  const int rounds = 500 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    weft::Channel<int> channel;
    std::thread sender([&] { CHECK(channel.send(1)); });
    weft::run({.workers = 2}, [&] { CHECK(channel.receive() == 1); });
    sender.join();
  }
}

TEST_SUITE_END();

}  // namespace
