// Regression test: a join returned too early. Closures that another caller's close had dropped, and
// values of FiberLocals of its workers, were destroyed only later.
#include <atomic>
#include <utility>
#include <weft/event.hpp>
#include <weft/fiber_local.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;

TEST_SUITE_BEGIN("pool/join");

// Has a destructor that takes a while, but only for one object.
class Cargo {
 public:
  explicit Cargo(std::atomic<int>& ended) : ended_(&ended) {}
  Cargo(Cargo&& other) noexcept : ended_(std::exchange(other.ended_, nullptr)) {}
  Cargo& operator=(Cargo&&) = delete;
  ~Cargo() {
    if (ended_ == nullptr) return;
    for (int i = 0; i < 20; ++i) this_fiber::yield();
    ++*ended_;
  }

 private:
  std::atomic<int>* ended_;
};

FIBER_TEST_CASE("join() returns only after the tasks that another caller dropped are destroyed") {
  std::atomic<int> ended{0};
  Event hold;
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  pool.go([&] { hold.wait(); });
  while (pool.stats().busy == 0) this_fiber::yield();
  for (int i = 0; i < 5; ++i) pool.go([cargo = Cargo(ended)] { FAIL_CHECK("dropped"); });
  auto closer = spawn([&] { pool.close(Close::discard); });
  while (!pool.is_closed_hint()) this_fiber::yield();
  hold.set();
  pool.join();
  CHECK(ended == 5);
  closer.join();
}

FIBER_TEST_CASE("join() returns only after the workers' FiberLocal values are destroyed") {
  static std::atomic<int> made, gone;
  made = gone = 0;
  struct Kept {
    Kept() { ++made; }
    ~Kept() {
      for (int i = 0; i < 20; ++i) this_fiber::yield();
      ++gone;
    }
  };
  static FiberLocal<Kept> kept;
  FiberPool pool({.capacity = 3});
  for (int i = 0; i < 9; ++i) {
    pool.go([] {
      (void)kept.get();
      this_fiber::yield();
    });
  }
  pool.close(Close::drain);
  pool.join();
  CHECK(made > 0);
  CHECK(gone == made);
}

TEST_SUITE_END();

}  // namespace
