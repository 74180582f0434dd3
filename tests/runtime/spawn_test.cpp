#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Errc;
using weft::test::kSlowdown;

std::error_code code_of(void (*call)()) {
  try {
    call();
  } catch (const std::system_error& caught) {
    return caught.code();
  }
  return {};
}

TEST_SUITE_BEGIN("runtime/spawn");

THREAD_TEST_CASE("join() returns a fiber's result to fibers and plain threads") {
  const auto check = [] {
    CHECK(weft::spawn([] { return 42; }).join() == 42);
    CHECK(*weft::spawn([] { return std::make_unique<int>(7); }).join() == 7);
    CHECK(weft::spawn([] { return std::string(1000, 'x'); }).join().size() == 1000);
    int ran = 0;
    weft::spawn([&] { ran = 1; }).join();
    CHECK(ran == 1);
  };
  check();
  weft::spawn(check).join();
}

THREAD_TEST_CASE("join() throws the fiber's exception, and no other call throws the exception") {
  auto handle = weft::spawn([]() -> int { throw std::runtime_error("thrown inside"); });
  CHECK_THROWS_WITH_AS(handle.join(), "thrown inside", std::runtime_error);
  CHECK(!handle.joinable());
  weft::spawn([] {
    auto inner = weft::spawn([] { throw 17; });
    int caught = 0;
    try {
      inner.join();
    } catch (int value) {
      caught = value;
    }
    CHECK(caught == 17);
  }).join();
}

FIBER_TEST_CASE("the destructor of a join handle joins the fiber and drops its result") {
  std::atomic<bool> ended{false};
  {
    const auto handle = weft::spawn([&] {
      for (int i = 0; i < 10; ++i) weft::this_fiber::yield();
      ended.store(true);
      throw std::runtime_error("nobody wants it");
    });
  }
  CHECK(ended.load());
  auto overwritten = weft::spawn([&] {
    weft::this_fiber::sleep_for(1ms);
    ended.store(false);
  });
  overwritten = weft::spawn([] {});
  CHECK(!ended.load());
}

FIBER_TEST_CASE("a detached fiber outlives its handle, and the fiber's exception is dropped") {
  weft::WaitGroup done;
  done.add(2);
  auto handle = weft::spawn([&] {
    weft::this_fiber::yield();
    done.done();
  });
  handle.detach();
  CHECK(!handle.joinable());
  weft::spawn([&] {
    done.done();
    throw 1;
  }).detach();
  done.wait();
}

FIBER_TEST_CASE("a join handle reports whether its fiber has ended") {
  weft::Semaphore go_on(0);
  auto handle = weft::spawn([&] {
    go_on.acquire();
    return 5;
  });
  CHECK(handle.joinable());
  CHECK(!handle.done());
  CHECK(!handle.wait_for(0ns));
  CHECK(!handle.wait_for(200us));
  go_on.release();
  CHECK(handle.wait_for(1h));
  CHECK(handle.done());
  CHECK(handle.wait_for(0ns));
  CHECK(handle.join() == 5);
  CHECK(!handle.done());
  weft::JoinHandle<int> empty;
  CHECK(!empty.joinable());
  CHECK(!empty.done());
}

THREAD_TEST_CASE(
    "join() returns a fiber's result when timed waits of 0 to 2 us race with the fiber's end") {
  for (int round = 0; round < 500 / static_cast<int>(kSlowdown); ++round) {
    auto handle = weft::spawn([round] { return round; });
    while (!handle.wait_for(std::chrono::microseconds(round % 3))) {
    }
    CHECK(handle.join() == round);
  }
}

// As with std::thread, objects that a capture's destructor uses may be destroyed after the join.
THREAD_TEST_CASE("the captures of a fiber's callable are destroyed before join() returns") {
  struct SlowToDie {
    explicit SlowToDie(std::atomic<bool>& flag) : dead(&flag) {}
    SlowToDie(SlowToDie&& other) noexcept : dead(std::exchange(other.dead, nullptr)) {}
    ~SlowToDie() {
      if (dead == nullptr) return;
      for (int i = 0; i < 20; ++i) weft::this_fiber::yield();
      dead->store(true);
    }
    std::atomic<bool>* dead;
  };
  const auto check = [] {
    std::atomic<bool> dead{false};
    weft::spawn([held = SlowToDie(dead)] {}).join();
    CHECK(dead.load());
    while (!dead.load()) weft::this_fiber::yield();  // Only a failure gets here.
  };
  check();
  weft::spawn(check).join();
}

FIBER_TEST_CASE("a spawn that fails starts no fiber and destroys the callable") {
  const auto held = std::make_shared<int>(1);
  try {
    weft::go({.stack_size = std::size_t{1} << 40}, [held] {});
    FAIL_CHECK("nothing was thrown");
  } catch (const std::system_error& caught) {
    CHECK(caught.code() == Errc::invalid_stack_size);
    CHECK(std::string(caught.what()).find("1099511627776") != std::string::npos);
    CHECK(std::string(caught.what()).find("16777216") != std::string::npos);
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("spawn() on a plain thread without a runtime throws an error") {
  CHECK(code_of([] { weft::go([] {}); }) == Errc::no_runtime);
  CHECK(code_of([] { (void)weft::spawn([] {}); }) == Errc::no_runtime);
}

FIBER_TEST_CASE("each fiber has the stack size that its spawn requests") {
  const auto use_stack = [](std::size_t bytes) {
    return weft::spawn({.stack_size = bytes + bytes / 8},
                       [bytes] {
                         // Touches the pages from the top, as real frames do.
                         volatile char* room = static_cast<volatile char*>(__builtin_alloca(bytes));
                         for (std::size_t i = bytes; i > 0; i -= 1024) room[i - 1] = 1;
                         weft::this_fiber::yield();
                         return room[1023] == 1;
                       })
        .join();
  };
  CHECK(use_stack(40 << 10));
  CHECK(use_stack(1 << 20));
  CHECK(use_stack(14 << 20));
}

FIBER_TEST_CASE_WITH("fibers without a requested stack size have the runtime's stack size",
                     {.options = {.stack_size = 2 << 20}}) {
  CHECK(weft::spawn([] {
          volatile char room[1 << 20];
          room[0] = 1;
          room[sizeof room - 1] = 1;
          return room[0] == 1;
        }).join());
}

FIBER_TEST_CASE("the callable of a fiber may be large, move-only, or a copy of an lvalue") {
  std::array<int, 1000> numbers{};
  numbers.fill(3);
  CHECK(weft::spawn([numbers] { return numbers[999]; }).join() == 3);
  auto owner = std::make_unique<int>(4);
  CHECK(weft::spawn([owner = std::move(owner)] { return *owner; }).join() == 4);
  auto counting = [count = 0]() mutable { return ++count; };
  CHECK(weft::spawn(counting).join() == 1);
  CHECK(weft::spawn(counting).join() == 1);
}

FIBER_TEST_CASE("a tree of fibers returns the results of all its fibers") {
  struct Tree {
    static int count(int depth) {
      if (depth == 0) return 1;
      auto left = weft::spawn([depth] { return count(depth - 1); });
      auto right = weft::spawn([depth] { return count(depth - 1); });
      return left.join() + right.join();
    }
  };
  CHECK(Tree::count(kSlowdown > 1 ? 8 : 12) == (1 << (kSlowdown > 1 ? 8 : 12)));
}

THREAD_TEST_CASE("plain threads and fibers can spawn at the same time") {
  std::atomic<int> ran{0};
  constexpr int kEach = 1000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) weft::go([&] { ran.fetch_add(1); });
    });
  }
  runtime.run([&] {
    for (int n = 0; n < kEach; ++n) weft::go([&] { ran.fetch_add(1); });
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(runtime.wait_idle_for(60s));
  CHECK(ran.load() == 5 * kEach);
  CHECK(runtime.stats().spawned == runtime.stats().finished);
}

FIBER_TEST_CASE("join() returns the reference that a fiber returns") {
  int variable = 0;
  CHECK(&weft::spawn([&]() -> int& { return variable; }).join() == &variable);
  auto mover = weft::spawn([&]() -> int&& { return std::move(variable); });
  int&& moved = mover.join();
  CHECK(&moved == &variable);
}

TEST_SUITE_END();

}  // namespace
