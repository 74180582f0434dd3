// Tests joins of fibers that have not started: such a fiber runs on the stack of its joiner.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/fiber_local.hpp>
#include <weft/go.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::spawn;
using weft::test::kSlowdown;

// Returns an address near the caller's frame.
[[gnu::noinline]] std::intptr_t here() {
  return reinterpret_cast<std::intptr_t>(__builtin_frame_address(0));
}
// Returns whether both addresses can be on one stack: stacks have 64 KiB, of which the callers of
// the tests use a part.
bool is_below_on_one_stack(std::intptr_t lower, std::intptr_t upper) {
  return lower < upper && upper - lower < 16 << 10;
}

#define ONE_WORKER_TEST_CASE(sentence) FIBER_TEST_CASE_WITH(sentence, {.workers = {1}})

TEST_SUITE_BEGIN("runtime/in_place");

ONE_WORKER_TEST_CASE("a joined fiber that has not started runs on the stack of the joining fiber") {
  const std::intptr_t mine = here();
  int in_place = 0;
  for (int i = 0; i < 10; ++i) {
    auto handle = spawn([] { return here(); });
    if (is_below_on_one_stack(handle.join(), mine)) ++in_place;
  }
  // Sometimes other fibers run first.
  CHECK(in_place >= 9);
}

ONE_WORKER_TEST_CASE(
    "a child runs in place even if it has a name or a large callable, or if its handle is "
    "destroyed") {
  const std::intptr_t mine = here();
  int in_place = 0;
  const auto note = [&](std::intptr_t place) {
    if (is_below_on_one_stack(place, mine)) ++in_place;
  };
  for (int i = 0; i < 10; ++i) {
    note(spawn({.name = "child"}, [] { return here(); }).join());
    const std::vector<int> captured(3, i);
    const std::string more(100, 'x');
    note(spawn([captured, more, also = captured] { return here(); }).join());
    {
      const auto handle = spawn([&] { note(here()); });
    }
  }
  CHECK(in_place >= 28);
}

// Uses slightly more than `kib` KiB of the stack.
[[gnu::noinline]] int use_up(std::size_t kib, const std::function<int()>& then) {
  volatile char room[1024];
  room[0] = static_cast<char>(kib);
  const int result = kib == 0 ? then() : use_up(kib - 1, then);
  return result + room[0] * 0;
}

ONE_WORKER_TEST_CASE(
    "at any depth, a child that runs in place has as much stack space as on a stack of its own") {
  if (weft::test::kSanitized) return weft::test::skip("a sanitizer's frames are larger");
  const std::function<int()> nothing = [] { return 1; };
  for (const std::size_t parent : {0U, 4U, 8U, 12U, 13U, 14U, 15U, 16U, 24U, 32U, 40U}) {
    const int result =
        use_up(parent, [&] { return spawn([&] { return use_up(54, nothing); }).join(); });
    CHECK(result == 1);
  }
}

ONE_WORKER_TEST_CASE(
    "children that are joined in the order in which they were spawned run in place") {
  const std::intptr_t mine = here();
  int in_place = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<weft::JoinHandle<std::intptr_t>> children;
    for (int i = 0; i < 5; ++i) children.push_back(spawn([] { return here(); }));
    for (auto& child : children) {
      if (is_below_on_one_stack(child.join(), mine)) ++in_place;
    }
  }
  // When other fibers run first, all ready fibers run.
  CHECK(in_place >= 40);
}

ONE_WORKER_TEST_CASE("a child that requests a stack size runs on a stack of its own") {
  const std::intptr_t mine = here();
  for (const std::size_t size : {std::size_t{16} << 10, std::size_t{256} << 10}) {
    const std::intptr_t place = spawn({.stack_size = size}, [] { return here(); }).join();
    CHECK(!is_below_on_one_stack(place, mine));
  }
}

ONE_WORKER_TEST_CASE("wait groups and task groups run only their own fibers in place") {
  const std::intptr_t mine = here();
  int in_place = 0;
  int others = 0;
  for (int round = 0; round < 10; ++round) {
    weft::WaitGroup group;
    weft::go([&] {
      if (is_below_on_one_stack(here(), mine)) ++others;
    });
    for (int i = 0; i < 3; ++i) {
      group.go([&] {
        if (is_below_on_one_stack(here(), mine)) ++in_place;
      });
    }
    group.wait();
    weft::TaskGroup tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.spawn([&] {
        if (is_below_on_one_stack(here(), mine)) ++in_place;
      });
    }
    tasks.join();
  }
  CHECK(in_place >= 50);
  CHECK(others == 0);
}

FIBER_TEST_CASE("a fiber that join() runs in place has its own id, name and FiberLocals") {
  const std::uint64_t my_id = weft::this_fiber::id();
  weft::this_fiber::set_name("parent");
  static weft::FiberLocal<int> local;
  *local = 7;
  auto handle = spawn([my_id] {
    CHECK(weft::this_fiber::id() != my_id);
    CHECK(weft::this_fiber::name().empty());
    CHECK(*local == 0);
    *local = 8;
    weft::this_fiber::set_name("child");
    weft::this_fiber::yield();
    CHECK(weft::this_fiber::name() == "child");
    CHECK(*local == 8);
  });
  handle.join();
  CHECK(weft::this_fiber::id() == my_id);
  CHECK(weft::this_fiber::name() == "parent");
  CHECK(*local == 7);
}

FIBER_TEST_CASE(
    "a child that runs in place and its parent do not see each other's current exceptions") {
  for (int i = 0; i < 70; ++i) {
    try {
      throw std::runtime_error("the parent's");
    } catch (const std::runtime_error&) {
      spawn([] {
        CHECK(std::current_exception() == nullptr);
        CHECK(std::uncaught_exceptions() == 0);
        try {
          throw std::logic_error("the child's");
        } catch (const std::logic_error& caught) {
          weft::this_fiber::yield();
          CHECK(std::string(caught.what()) == "the child's");
        }
      }).join();
      CHECK_THROWS_WITH_AS(throw, "the parent's", std::runtime_error);
    }
  }
}

// Joins while an exception passes through.
struct JoinsOnTheWay {
  ~JoinsOnTheWay() {
    spawn([] { CHECK(std::uncaught_exceptions() == 0); }).join();
    CHECK(std::uncaught_exceptions() == 1);
  }
};
FIBER_TEST_CASE("a destructor that runs during stack unwinding may join a fiber") {
  int caught = 0;
  for (int i = 0; i < 70; ++i) {
    try {
      const JoinsOnTheWay joins;
      throw i;
    } catch (int value) {
      caught += value == i ? 1 : 0;
    }
  }
  CHECK(caught == 70);
}

FIBER_TEST_CASE("join() throws the exception of a child that runs in place") {
  for (int i = 0; i < 70; ++i) {
    auto handle = spawn([i] { throw i; });
    int caught = -1;
    try {
      handle.join();
    } catch (int value) {
      caught = value;
    }
    CHECK(caught == i);
  }
}

FIBER_TEST_CASE(
    "a parent and a child that runs in place may both wait, and then continue on another worker") {
  weft::Channel<int> ping;
  weft::Channel<int> pong;
  auto partner = spawn([&] {
    while (auto value = ping.receive()) (void)pong.send(*value + 1);
  });
  int sum = 0;
  for (int i = 0; i < 1000; ++i) {
    sum += spawn([&, i] {
             (void)ping.send(i);
             const int reply = pong.receive().value();
             // A child may itself be a parent.
             return spawn([&, reply] {
                      weft::this_fiber::yield();
                      (void)ping.send(reply);
                      return pong.receive().value();
                    })
                 .join();
           }).join();
  }
  ping.close();
  partner.join();
  CHECK(sum == 1000 * 999 / 2 + 2000);
}

std::uint64_t depth(std::uint64_t levels) {
  if (levels == 0) return 0;
  return 1 + spawn([levels] { return depth(levels - 1); }).join();
}
FIBER_TEST_CASE(
    "a recursion in which each fiber joins its child continues on a new stack when its stack is "
    "full") {
  const std::uint64_t levels = 20'000 / kSlowdown;
  CHECK(depth(levels) == levels);
}

// A frame of this size needs at least three quarters of a stack.
[[gnu::noinline]] std::uint64_t use_three_quarters(std::uint64_t levels) {
  constexpr std::size_t kBytes = (std::size_t{44} << 10) / (weft::test::kSanitized ? 8 : 1);
  volatile char frame[kBytes];
  for (std::size_t i = 0; i < kBytes; i += 1024) frame[i] = static_cast<char>(levels);
  return static_cast<std::uint64_t>(static_cast<unsigned char>(frame[1024]));
}
std::uint64_t greedy(std::uint64_t levels) {
  const std::uint64_t used = use_three_quarters(levels % 100);
  if (levels == 0) return used;
  return used + spawn([levels] { return greedy(levels - 1); }).join();
}
FIBER_TEST_CASE(
    "each child that runs in place can use three quarters of a stack, however deeply children "
    "nest") {
  CHECK(greedy(99) == 99 * 100 / 2);
}

ONE_WORKER_TEST_CASE("a fiber that spawns and joins forever lets other fibers run") {
  std::atomic<bool> stop{false};
  weft::go([&] { stop.store(true); });
  std::uint64_t joins = 0;
  while (!stop.load()) {
    spawn([] {}).join();
    ++joins;
  }
  CHECK(joins < 1000);
}

ONE_WORKER_TEST_CASE("timers fire while fibers spawn and join continuously") {
  std::atomic<bool> stop{false};
  auto sleeper = spawn([&] {
    weft::this_fiber::sleep_for(std::chrono::milliseconds(1));
    stop.store(true);
  });
  while (!stop.load()) spawn([] {}).join();
  sleeper.join();
}

// Runs a tree in which every fiber performs one of the operations that a fiber may perform before
// and after its children. The oracle is the number of leaves.
std::uint64_t leaves(weft::test::Random random, int levels) {
  if (levels == 0) return 1;
  std::vector<weft::JoinHandle<std::uint64_t>> children;
  const std::uint64_t count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    children.push_back(
        spawn([seed = random(), levels] { return leaves(weft::test::Random(seed), levels - 1); }));
    if (random.one_in(4)) weft::this_fiber::yield();
    if (random.one_in(30)) {
      weft::this_fiber::sleep_for(std::chrono::nanoseconds(random.below(2000)));
    }
  }
  if (random.one_in(2)) std::swap(children.front(), children.back());
  std::uint64_t sum = 0;
  for (auto& child : children) sum += child.join();
  return sum;
}
std::uint64_t leaves_alone(weft::test::Random random, int levels) {
  if (levels == 0) return 1;
  std::uint64_t sum = 0;
  const std::uint64_t count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    sum += leaves_alone(weft::test::Random(random()), levels - 1);
    (void)random.one_in(4);
    if (random.one_in(30)) (void)random.below(2000);
  }
  return sum;
}
FIBER_TEST_CASE(
    "a tree of fibers that spawn, yield, sleep and join returns the correct number of leaves") {
  for (std::uint64_t seed = 1; seed <= 40 / kSlowdown; ++seed) {
    CHECK(leaves(weft::test::Random(seed), 8) == leaves_alone(weft::test::Random(seed), 8));
  }
}

TEST_SUITE_END();

}  // namespace
