// Tests pools and sub-pools that are closed one after the other while accepted tasks are running.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>
#include <weft/go.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using Gate = weft::test::Flag;

TEST_SUITE_BEGIN("pool/sub_pool_close");

namespace {

// Runs a parent's close(discard), and stops it before it reaches the sub-pools that were made
// earlier.
class HeldClose {
 public:
  explicit HeldClose(FiberPool& parent) : pool_({.queue_capacity = 1, .parent = &parent}) {
    pool_.pause();
    // The close drops the task with everything that it holds.
    std::shared_ptr<void> held(nullptr, [this](void*) {
      begun_.set();
      release_.wait();
    });
    if (!pool_.submit([held = std::move(held)] {})) throw std::logic_error("the pool is full");
    closer_ = std::thread([&parent] { parent.close(Close::discard); });
    begun_.wait();
  }
  void end() {
    release_.set();
    closer_.join();
  }

 private:
  Gate begun_, release_;
  FiberPool pool_;
  std::thread closer_;
};

}  // namespace

// A submitter queues a task and requests a worker from the parent. Between the closes of the parent
// and of the sub-pool, the parent may refuse another submitter. The queued task waits for its pool.
THREAD_TEST_CASE(
    "a sub-pool loses no submitted task between its parent's close and its own close") {
  for (const bool nested : {false, true}) {
    FiberPool parent({.capacity = 1});
    FiberPool middle({.capacity = 1, .parent = &parent});
    FiberPool pool({.capacity = 1, .parent = nested ? &middle : &parent});
    HeldClose close(parent);
    constexpr int kTimes = kSanitized ? 20'000 : 100'000;
    std::vector<std::thread> submitters;
    for (int i = 0; i < 2; ++i) {
      submitters.emplace_back([&] {
        for (int n = 0; n < kTimes; ++n) (void)pool.try_submit([&] { (void)pool.submit([] {}); });
      });
    }
    for (auto& thread : submitters) thread.join();
    pool.wait_idle();
    close.end();
    CHECK(balanced(pool.stats()));
  }
}

FIBER_TEST_CASE(
    "accepted tasks of a sub-pool run while only the sub-pool's grandparent is being closed") {
  std::atomic<int> ran{0};
  FiberPool grand({.capacity = 1});
  FiberPool parent({.capacity = 1, .parent = &grand});
  FiberPool pool({.capacity = 1, .queue_capacity = 1, .parent = &parent});
  pool.pause();
  CHECK(pool.submit([&] { ran.fetch_add(1); }));
  HeldClose close(grand);
  pool.resume();
  pool.wait_idle();
  CHECK(ran.load() == 1);
  close.end();
}

FIBER_TEST_CASE("a drain runs tasks that wait in several full nested pools") {
  for (const bool busy : {false, true}) {
    FiberPool grand({.capacity = 1});
    FiberPool parent({.capacity = 1, .parent = &grand});
    FiberPool pool({.capacity = 1, .queue_capacity = 1, .parent = &parent});
    FiberPool* const drained[] = {&grand, &parent, &pool};
    for (FiberPool* first : drained) {
      Gate begun, release;
      std::atomic<int> ran{0};
      for (FiberPool* opened : drained) opened->reopen();
      if (busy) {
        CHECK(grand.submit([&] {
          begun.set();
          release.wait();
        }));
        begun.wait();
      } else {
        pool.pause();
      }
      CHECK(pool.submit([&] { ran.fetch_add(1); }));
      first->close(Close::drain);
      pool.close(Close::drain);
      release.set();
      pool.join();
      CHECK(ran.load() == 1);
      parent.wait_idle();
      grand.wait_idle();
      CHECK(parent.stats().live == 0);
      CHECK(grand.stats().blocked == 0);
    }
  }
}

FIBER_TEST_CASE(
    "a sub-pool that waits behind a blocked submitter of its parent continues when that submitter "
    "is refused") {
  Gate ran;
  HeldPool held({.capacity = 2});
  FiberPool& parent = held.pool;
  FiberPool pool({.capacity = 1, .queue_capacity = 1, .parent = &parent});
  auto heavy = spawn([&] { CHECK(parent.submit({.weight = 2}, [] {}) == Errc::closed); });
  wait_until_true([&] { return parent.stats().blocked == 1; });
  CHECK(pool.submit([&] { ran.set(); }));
  CHECK(pool.stats().queued == 1);
  CHECK(parent.stats().blocked == 1);
  parent.close(Close::drain);
  heavy.join();
  ran.wait();  // It runs alongside the first task.
  held.hold.set();
  parent.join();
}

FIBER_TEST_CASE("closing a pool closes its sub-pools and their sub-pools") {
  FiberPool grand({.capacity = 1});
  grand.close(Close::drain);
  FiberPool parent({.capacity = 1, .parent = &grand});
  FiberPool pool({.capacity = 1, .parent = &parent});
  for (FiberPool* closed : {&parent, &pool}) {
    CHECK(closed->is_closed_hint());
    CHECK(closed->submit([] {}) == Errc::closed);
  }
  pool.reopen();
  CHECK(pool.is_closed_hint());
  for (FiberPool* opened : {&grand, &parent, &pool}) opened->reopen();
  CHECK(pool.run([] { return 1; }) == 1);
}

THREAD_TEST_CASE("sub-pools may be made and destroyed while their parent is closed") {
  const int times = 2'000 / kSlowdown;
  std::atomic<int> makers{2};
  std::atomic<int> made{0};
  FiberPool parent({.capacity = 2, .queue_capacity = 4});
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < times; ++n) {
        FiberPool first({.capacity = 1, .queue_capacity = 2, .parent = &parent});
        FiberPool second({.capacity = 2, .parent = &parent});
        made.fetch_add(1);
        for (FiberPool* pool : {&first, &second, &first}) {
          if (!pool->try_submit([] {})) continue;
          if (n % 2 == 0) pool->close(Close::discard);
        }
      }
      makers.fetch_sub(1);
    });
  }
  constexpr Close kModes[] = {Close::discard, Close::drain, Close::cancel};
  for (std::size_t n = 0; makers.load() > 0; ++n) {
    parent.close(kModes[n % 3]);
    parent.reopen();
    for (const int seen = made; made == seen && makers > 0;) std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  CHECK(parent.run([] { return 1; }) == 1);
  CHECK(balanced(parent.stats()));
}

TEST_SUITE_END();
