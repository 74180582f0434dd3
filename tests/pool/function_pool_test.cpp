#include <weft/function_pool.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>
#include <weft/channel.hpp>
#include <weft/context.hpp>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Flag;

namespace {

// Counts the living objects of all workers, and records whether two tasks used one object at once.
struct Objects {
  std::atomic<int> made{0};
  std::atomic<int> alive{0};
  std::atomic<int> in_use_twice{0};
};

// Can be neither copied nor moved. Only one task at a time may use this object.
class Counter {
 public:
  explicit Counter(Objects& objects) : objects_(objects) {
    ++objects_.made;
    ++objects_.alive;
  }
  ~Counter() { --objects_.alive; }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  int operator()(int yields) {
    if (in_use_.exchange(true)) ++objects_.in_use_twice;
    for (int i = 0; i < yields; ++i) this_fiber::yield();
    in_use_ = false;
    return ++calls_;
  }

 private:
  Objects& objects_;
  std::atomic<bool> in_use_{false};
  int calls_ = 0;
};

}  // namespace

TEST_SUITE_BEGIN("pool/function_pool");

FIBER_TEST_CASE("a FunctionPool calls its function with each argument and returns the results") {
  FunctionPool<int, std::string> pool([](int i) { return std::to_string(i); }, {.capacity = 3});
  CHECK(pool.process(42) == "42");
  CHECK(pool.async(43).get() == "43");
  CHECK(pool.process_until(1h, 44) == "44");
  CHECK(pool.process_until({}, 45) == "45");
  FunctionPool<std::unique_ptr<int>, std::unique_ptr<int>> moves(
      [](std::unique_ptr<int> value) { return value; });
  CHECK(*moves.process(std::make_unique<int>(1)) == 1);
  CHECK(**moves.process_until(1h, std::make_unique<int>(2)) == 2);
  std::atomic<int> sum{0};
  FunctionPool<int> adds([&](int i) { sum += i; }, {.capacity = 3, .queue_capacity = 10});
  for (int i = 0; i < 100; ++i) CHECK(adds.invoke(i));
  adds.process(1000);
  CHECK(adds.process_until(1h, 10'000));
  adds.pool().wait_idle();
  CHECK(sum == 4950 + 11'000);
}

FIBER_TEST_CASE("a FunctionPool processes queued arguments in order") {
  Gate release;
  std::vector<int> order;
  FunctionPool<int> pool(
      [&](int i) {
        release.wait();
        order.push_back(i);
      },
      {.capacity = 1, .queue_capacity = 50});
  for (int i = 0; i < 50; ++i) CHECK(pool.invoke(i));
  release.set();
  pool.pool().wait_idle();
  for (int i = 0; i < 50; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

FIBER_TEST_CASE("concurrent calls of a FunctionPool never exceed the capacity") {
  Concurrency gauge;
  FunctionPool<int> pool(
      [&](int) {
        const Concurrency::Stay stay(gauge);
        this_fiber::yield();
      },
      {.capacity = 3, .queue_capacity = 4});
  WaitGroup submitters;
  for (int s = 0; s < 16; ++s) {
    submitters.go([&] {
      for (int i = 0; i < 50; ++i) CHECK(pool.invoke(i));
    });
  }
  submitters.wait();
  pool.pool().wait_idle();
  CHECK(gauge.most() <= 3);
  CHECK(pool.pool().stats().completed == 16 * 50);
}

FIBER_TEST_CASE("a full or closed FunctionPool refuses calls with the error codes of a FiberPool") {
  Gate release;
  const auto hold = [&](int) { release.wait(); };
  FunctionPool<int> pool(hold, {.capacity = 1, .on_full = OnFull::reject});
  CHECK(pool.invoke(1));
  CHECK(pool.invoke(2) == Errc::full);
  CHECK(pool.try_invoke(2) == Errc::full);
  CHECK(pool.invoke_until(Deadline::past(), 2) == Errc::timed_out);
  CHECK(pool.invoke_until(1ms, 2) == Errc::timed_out);
  CHECK_THROWS_AS(pool.process(2), std::system_error);
  CHECK_THROWS_AS((void)pool.process_until(1h, 2), std::system_error);
  CHECK_THROWS_AS((void)pool.async(2), std::system_error);
  release.set();
  pool.pool().wait_idle();
  pool.pool().close(Close::drain);
  CHECK(pool.invoke(3) == Errc::closed);
  CHECK(pool.try_invoke(3) == Errc::closed);
  CHECK_THROWS_AS((void)pool.process_until(1h, 3), std::system_error);
}

FIBER_TEST_CASE("a FunctionPool refuses an empty function") {
  using Pool = FunctionPool<int, int>;
  CHECK_THROWS_AS(Pool(std::function<int(int)>()), std::invalid_argument);
  const auto no_maker = per_worker(std::function<std::function<int(int)>()>());
  CHECK_THROWS_AS(Pool(no_maker, {}), std::invalid_argument);
  CHECK_THROWS_AS(Pool([](int i) { return i; }, {.capacity = 0}), std::invalid_argument);
}

FIBER_TEST_CASE(
    "an exception from a FunctionPool's function is passed to the waiter or to on_exception") {
  std::atomic<int> reported{0};
  FunctionPool<int, int> pool(
      [](int i) -> int { throw std::runtime_error("call " + std::to_string(i)); },
      {.capacity = 1, .idle_timeout = kNever, .on_exception = [&](std::exception_ptr) {
         ++reported;
       }});
  CHECK_THROWS_WITH((void)pool.process(1), "call 1");
  CHECK_THROWS_WITH((void)pool.process_until(1h, 2), "call 2");
  CHECK(reported == 0);
  CHECK(pool.invoke(3));
  pool.pool().wait_idle();
  CHECK(reported == 1);
  CHECK(pool.pool().stats().started == 1);
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends a FunctionPool call's wait for room, and the function is "
    "never called") {
  Gate release;
  std::atomic<int> calls{0};
  FunctionPool<int, int> pool(
      [&](int i) {
        ++calls;
        release.wait();
        return i;
      },
      {.capacity = 1});
  CHECK(pool.invoke(1));
  CHECK(!pool.process_until(1ms, 2).has_value());
  Context context;
  auto stopped = spawn([&] { return pool.process_until(context, 3).has_value(); });
  wait_until_true([&] { return pool.pool().stats().blocked == 1; });
  context.cancel();
  CHECK_FALSE(stopped.join());
  CHECK_FALSE(pool.process_until(context, 4).has_value());
  release.set();
  pool.pool().wait_idle();
  CHECK(calls == 1);
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends process_until()'s wait for the result and asks the "
    "function to stop") {
  Gate begun, release;
  std::atomic<bool> told{false};
  FunctionPool<int, int> pool(
      [&](int i, std::stop_token token) {
        if (i == 6) begun.set();
        while (!token.stop_requested() && !release.is_set()) this_fiber::yield();
        if (i == 6) told = token.stop_requested();
        return i;
      },
      {.capacity = 1});
  for (int i = 10; i < 20; ++i) CHECK_FALSE(pool.process_until(100us, i).has_value());
  Context context;
  pool.pool().wait_idle();
  auto stopped = spawn([&] { return pool.process_until(context, 6).has_value(); });
  begun.wait();
  context.cancel();
  CHECK_FALSE(stopped.join());
  pool.pool().wait_idle();
  CHECK(told);
  // No caller gives up here, so only the event ends the call.
  auto patient = spawn([&] { return pool.process(7); });
  release.set();
  CHECK(patient.join() == 7);
  CHECK(pool.process_until(1h, 8) == 8);
}

FIBER_TEST_CASE("a wait for a FunctionPool call throws an error when the pool drops the call") {
  Gate release;
  FunctionPool<int, int> pool(
      [&](int i) {
        release.wait();
        return i;
      },
      {.capacity = 1, .queue_capacity = 2});
  auto running = spawn([&] { return pool.process_until(1h, 1); });
  wait_until_true([&] { return pool.pool().stats().busy == 1; });
  auto queued = spawn([&] {
    CHECK_THROWS_AS((void)pool.process_until(1h, 2), std::system_error);
    CHECK_THROWS_AS((void)pool.process_until(1h, 3), std::system_error);
  });
  wait_until_true([&] { return pool.pool().stats().queued == 1; });
  pool.pool().close(Close::discard);
  queued.join();
  release.set();
  CHECK(running.join() == 1);
}

FIBER_TEST_CASE(
    "a function that calls its own FunctionPool of capacity 1 gives its slot back while waiting") {
  FunctionPool<int, int>* self = nullptr;
  FunctionPool<int, int> pool([&](int n) { return n == 0 ? 0 : n + self->process(n - 1); },
                              {.capacity = 1});
  self = &pool;
  CHECK(pool.process(20) == 210);
  CHECK(pool.pool().stats().live <= 1);
}

FIBER_TEST_CASE(
    "process_until() in a task of the same pool gives the task's slot back while the task waits") {
  FunctionPool<int, int>* self = nullptr;
  FunctionPool<int, int> pool(
      [&](int depth) { return depth == 0 ? 7 : *self->process_until(1h, depth - 1); },
      {.capacity = 1});
  self = &pool;
  CHECK(pool.process(3) == 7);
}

FIBER_TEST_CASE(
    "each worker of a FunctionPool has its own object, which no two calls use at once") {
  Objects objects;
  {
    FunctionPool<int, int> pool(per_worker([&] { return Counter(objects); }),
                                {.capacity = 4, .queue_capacity = 100, .idle_timeout = kNever});
    for (int i = 0; i < 200; ++i) CHECK(pool.invoke(i % 3));
    pool.pool().wait_idle();
    const PoolStats stats = pool.pool().stats();
    CHECK(static_cast<std::uint64_t>(objects.made.load()) <= stats.started);
    CHECK(stats.started <= 4);
    pool.pool().close(Close::drain);
    pool.join();
    CHECK(objects.alive == 0);
    pool.pool().reopen();
    CHECK(pool.process(0) == 1);
  }
  CHECK(objects.alive == 0);
  CHECK(objects.in_use_twice == 0);
}

FIBER_TEST_CASE(
    "a worker of a FunctionPool uses the same object for all its tasks until the worker retires") {
  Objects objects;
  FunctionPool<int, int> pool(per_worker([&] { return Counter(objects); }),
                              {.capacity = 1, .idle_timeout = 1ms});
  CHECK(pool.process(0) == 1);
  wait_until_true([&] { return pool.pool().stats().live == 0; });
  wait_until_true([&] { return objects.alive == 0; });
  CHECK(pool.process(0) == 1);
  CHECK(objects.made == 2);
  FunctionPool<int, int> kept(per_worker([&] { return Counter(objects); }),
                              {.capacity = 1, .idle_timeout = kNever});
  for (int i = 1; i <= 10; ++i) CHECK(kept.process(0) == i);
}

FIBER_TEST_CASE(
    "a FunctionPool call that runs on the caller's stack gets a new per_worker() object") {
  Objects objects;
  {
    Gate release;
    struct Nested {
      Counter counter;
      Gate& release;
      int operator()(int i) {
        if (i == 0) release.wait();
        return counter(1);
      }
    };
    FunctionPool<int, int> pool(per_worker([&] {
                                  return Nested{Counter(objects), release};
                                }),
                                {.capacity = 1, .on_full = OnFull::caller_runs});
    CHECK(pool.invoke(0));
    wait_until_true([&] { return objects.alive == 1; });
    for (int i = 0; i < 10; ++i) CHECK(pool.process(1) == 1);
    CHECK(objects.made == 11);
    CHECK(objects.alive == 1);
    release.set();
  }
  CHECK(objects.alive == 0);
  CHECK(objects.in_use_twice == 0);
}

FIBER_TEST_CASE(
    "a task receives the exception when its worker's object cannot be created, and the worker "
    "continues") {
  std::atomic<int> attempts{0};
  FunctionPool<int, int> pool(per_worker([&] {
                                if (++attempts <= 2) throw std::runtime_error("no connection");
                                return [](int i) { return i; };
                              }),
                              {.capacity = 1, .idle_timeout = kNever});
  CHECK_THROWS_WITH((void)pool.process(1), "no connection");
  CHECK_THROWS_WITH((void)pool.process_until(1h, 1), "no connection");
  CHECK(pool.process(1) == 1);
  CHECK(pool.pool().stats().started == 1);
}

THREAD_TEST_CASE("plain threads call a FunctionPool and wait for its results") {
  Objects objects;
  {
    FunctionPool<int, int> pool(per_worker([&] { return Counter(objects); }), {.capacity = 2});
    for (int i = 0; i < 20; ++i) CHECK(pool.invoke(1));
    CHECK(pool.process(0) > 0);
    CHECK(pool.process_until(1h, 0).has_value());
  }
  CHECK(objects.alive == 0);
  Gate release;
  FunctionPool<int, int> slow([&](int i) {
    release.wait();
    return i;
  });
  CHECK_FALSE(slow.process_until(Deadline::after(1ms), 1).has_value());
  release.set();
}

FIBER_TEST_CASE("close(cancel) asks all running calls of a FunctionPool to stop") {
  std::atomic<int> running{0}, stopped{0};
  const auto until_stopped = [&](int argument, const std::stop_token& token) {
    running.fetch_add(1);
    while (!token.stop_requested()) this_fiber::yield();
    stopped.fetch_add(1);
    return argument;
  };
  struct Object {
    decltype(until_stopped)& call;
    int operator()(int argument, const std::stop_token& token) { return call(argument, token); }
  };
  FunctionPool<int, int> plain(until_stopped, {.capacity = 4});
  FunctionPool<int, int> stateful(per_worker([&] { return Object{until_stopped}; }),
                                  {.capacity = 4});
  for (auto* functions : {&plain, &stateful}) {
    running.store(0);
    stopped.store(0);
    CHECK(functions->invoke(1));
    auto task = functions->async(2);
    auto waiting = spawn([&] { return functions->process(3); });
    auto in_time = spawn([&] { return functions->process_until(1h, 4); });
    wait_until_true([&] { return running.load() == 4; });
    functions->pool().close(Close::cancel);
    CHECK(task.get() == 2);
    CHECK(waiting.join() == 3);
    CHECK(in_time.join() == 4);
    functions->join();
    CHECK(stopped.load() == 4);
  }
}

TEST_SUITE_END();
