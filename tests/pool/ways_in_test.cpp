// Tests every way to submit to a pool: which callables it takes, what it returns, and what happens
// to refused callables.
#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/context.hpp>
#include <weft/function_pool.hpp>
#include <weft/ordered_stream.hpp>
#include <weft/parallel.hpp>
#include <weft/pool_set.hpp>
#include <weft/task_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Flag;

namespace {

// Can be moved but not copied, like a real connection.
struct Connection {
  std::unique_ptr<int> number = std::make_unique<int>(7);
  void operator()() const {}
};
struct StoppableConnection : Connection {
  void operator()(const std::stop_token&) const {}
};
// Does not fit into a pool's storage for small callables.
struct LargeConnection : Connection {
  std::array<std::uint64_t, 40> rest{};
};

// Makes a pool without a queue, whose only slot is in use.
struct Full {
  explicit Full(OnFull on_full = OnFull::reject)
      : pool({.capacity = 1, .on_full = on_full, .max_blocked = kUnlimited}) {
    pool.go([this] { release.wait(); });
  }
  ~Full() { release.set(); }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;
  Gate release;
  FiberPool pool;
};

// Returns whether a refused `offer` leaves the callable unchanged.
template <class Callable, class Offer>
bool gives_back(Offer offer, std::error_code why = Errc::full) {
  Callable callable;
  const std::error_code error = offer(std::move(callable));
  return error == why && callable.number != nullptr &&
         *callable.number == 7;  // NOLINT: it is back.
}

template <class Callable>
void check_given_back() {
  Full full;
  FiberPool& pool = full.pool;
  const SubmitOptions options{.priority = Priority::high};
  CHECK(gives_back<Callable>([&](Callable&& c) { return pool.submit(std::move(c)); }));
  CHECK(gives_back<Callable>([&](Callable&& c) { return pool.submit(options, std::move(c)); }));
  CHECK(gives_back<Callable>([&](Callable&& c) { return pool.try_submit(std::move(c)); }));
  CHECK(gives_back<Callable>([&](Callable&& c) { return pool.try_submit(options, std::move(c)); }));
  CHECK(gives_back<Callable>([&](Callable&& c) { return pool.submit_until(1us, std::move(c)); },
                             Errc::timed_out));
  CHECK(gives_back<Callable>(
      [&](Callable&& c) { return pool.submit_until(options, 1us, std::move(c)); },
      Errc::timed_out));
  CHECK(gives_back<Callable>([&](Callable&& c) { return pool.try_async(std::move(c)).error; }));
  CHECK(gives_back<Callable>(
      [&](Callable&& c) { return pool.try_async(options, std::move(c)).error; }));
  CHECK(gives_back<Callable>([&](Callable&& c) -> std::error_code {
    try {
      pool.go(std::move(c));
    } catch (const std::system_error& error) {
      return error.code();
    }
    return {};
  }));
  CHECK(gives_back<Callable>([&](Callable&& c) -> std::error_code {
    try {
      (void)pool.async(options, std::move(c));
    } catch (const std::system_error& error) {
      return error.code();
    }
    return {};
  }));
  TaskGroup group(pool);
  CHECK(gives_back<Callable>([&](Callable&& c) { return group.try_spawn(std::move(c)); }));
  CHECK(gives_back<Callable>([&](Callable&& c) { return group.spawn_or_refuse(std::move(c)); }));
  std::stop_source stopped;
  stopped.request_stop();
  CHECK(gives_back<Callable>(
      [&](Callable&& c) { return pool.try_submit({.stop = stopped.get_token()}, std::move(c)); },
      Errc::cancelled));
}

}  // namespace

TEST_SUITE_BEGIN("pool/ways_in");

FIBER_TEST_CASE("a pool that refuses a task leaves the caller's callable unchanged") {
  check_given_back<Connection>();
  check_given_back<StoppableConnection>();
  check_given_back<LargeConnection>();
  Full full;
  auto owned = std::make_unique<int>(3);
  auto lambda = [owned = std::move(owned)] { return *owned; };
  CHECK(full.pool.try_submit(std::move(lambda)) == Errc::full);
  CHECK(lambda() == 3);  // NOLINT(bugprone-use-after-move): it is back.
  FunctionPool<std::unique_ptr<int>> functions([&](std::unique_ptr<int>) { full.release.wait(); },
                                               {.capacity = 1, .on_full = OnFull::reject});
  CHECK(functions.invoke(std::make_unique<int>(1)));
  auto argument = std::make_unique<int>(5);
  CHECK(functions.invoke(std::move(argument)) == Errc::full);
  CHECK(functions.invoke({.key = 1}, std::move(argument)) == Errc::full);
  CHECK(functions.try_async(std::move(argument)).error == Errc::full);
  CHECK_THROWS_AS((void)functions.process_until(1h, std::move(argument)), std::system_error);
  CHECK(*argument == 5);
  full.release.set();
}

FIBER_TEST_CASE(
    "submit_bulk() reports why it stopped, and does not move the callables that it refused") {
  Gate release;
  FiberPool pool({.capacity = 1, .queue_capacity = 20, .on_full = OnFull::reject});
  pool.go([&] { release.wait(); });
  wait_until_true([&] { return pool.stats().busy == 1; });
  std::vector<Connection> connections(40);
  const auto result = pool.submit_bulk(std::move_iterator(connections.begin()),
                                       std::move_sentinel(connections.end()));
  CHECK(result.value == 20);
  CHECK(result.error == Errc::full);
  CHECK_FALSE(result);
  for (std::size_t i = 0; i < connections.size(); ++i) {
    CHECK((connections[i].number != nullptr) == (i >= 20));
  }
  const std::vector<void (*)()> tasks(3, [] {});
  CHECK(pool.submit_bulk_until(1us, tasks).error == Errc::timed_out);
  std::stop_source stop;
  (void)stop.request_stop();
  CHECK(pool.submit_bulk_until(stop.get_token(), tasks).error == Errc::cancelled);
  CHECK(pool.submit_bulk({.key = 1}, tasks).error == Errc::full);
  CHECK(pool.submit_bulk_until({.weight = 2}, 1us, tasks).error == Errc::too_heavy);
  release.set();
  CHECK(pool.submit_bulk_until({.key = 1}, {}, tasks).value == 3);
  pool.wait_idle();
  CHECK(balanced(pool.stats()));
}

FIBER_TEST_CASE(
    "async_until() and run_until() stop waiting when a deadline passes or a stop is requested") {
  Full full(OnFull::block);
  FiberPool& pool = full.pool;
  CHECK_THROWS_AS((void)pool.async_until(1us, [] {}), std::system_error);
  CHECK_THROWS_AS((void)pool.async_until({.key = 1}, 1us, [] {}), std::system_error);
  CHECK_FALSE(pool.run_until(1us, [] { return 1; }).has_value());
  CHECK_FALSE(pool.run_until({.key = 1}, 1us, [] {}));
  std::stop_source stop;
  (void)stop.request_stop();
  CHECK_THROWS_AS((void)pool.async_until(stop.get_token(), [] {}), std::system_error);
  CHECK_FALSE(pool.run_until(stop.get_token(), [] {}));
  FiberPool free({.capacity = 1});
  CHECK(free.run_until(1h, [] { return 1; }) == 1);
  CHECK(free.run_until({.priority = Priority::low}, 1h, [] {}));
  CHECK(free.async_until(1h, [] { return 2; }).get() == 2);
  CHECK(free.try_async([] { return 3; }).value.get() == 3);
  CHECK_THROWS_WITH((void)free.run_until(1h, [] { throw std::runtime_error("thrown"); }), "thrown");
  // A running task gets a stop request, and continues alone. The limit may pass before the task
  // runs.
  std::atomic<bool> ran{false}, stopped{false};
  for (auto limit = 1ms; !ran.load(); limit *= 2) {
    CHECK_FALSE(free.run_until(limit, [&](const std::stop_token& token) {
      ran.store(true);
      while (!token.stop_requested()) this_fiber::yield();
      stopped.store(true);
    }));
  }
  free.wait_idle();
  CHECK(stopped.load());
}

FIBER_TEST_CASE(
    "submit_until() waits for room until the earliest deadline or stop request of the call or its "
    "task") {
  Full full(OnFull::block);
  std::stop_source call, task;
  const auto blocked = [&] {
    return spawn([&] {
      return full.pool.submit_until({.stop = task.get_token()}, call.get_token(), [] {});
    });
  };
  auto first = blocked();
  wait_until_true([&] { return full.pool.stats().blocked == 1; });
  task.request_stop();
  CHECK(first.join() == Errc::cancelled);
  task = std::stop_source();
  auto second = blocked();
  wait_until_true([&] { return full.pool.stats().blocked == 1; });
  call.request_stop();
  CHECK(second.join() == Errc::cancelled);
  CHECK(full.pool.submit_until({.deadline = Deadline::after(1us)}, 1h, [] {}) == Errc::timed_out);
  CHECK(full.pool.submit_until({.deadline = Deadline::after(1h)}, 1us, [] {}) == Errc::timed_out);
  // A stored limit holds the token that was moved into it.
  const Until kept{Deadline::after(1us), std::stop_source().get_token()};
  CHECK(full.pool.submit_until(kept, [] {}) == Errc::timed_out);
}

FIBER_TEST_CASE(
    "the functions of a FunctionPool accept submit options, deadlines and stop tokens") {
  FunctionPool<int, int> pool([](int i, const std::stop_token& token) {
    while (i == 0 && !token.stop_requested()) this_fiber::yield();
    return i;
  });
  CHECK(pool.invoke({.priority = Priority::high}, 1));
  CHECK(pool.try_invoke({.key = "a key"}, 1));
  CHECK(pool.invoke_until({.weight = 1}, 1h, 1));
  CHECK(pool.process({.key = 1}, 2) == 2);
  CHECK(pool.process_until({.key = 1}, 1h, 3) == 3);
  CHECK(pool.async_until(1h, 4).get() == 4);
  CHECK(pool.async_until({.timeout = 1ms}, 1h, 0).get() == 0);
  auto running = pool.try_async(0);
  CHECK(running.error == std::error_code());
  (void)running.value.cancel();  // Before or after it has begun.
  running.value.wait();
}

FIBER_TEST_CASE("parallel loops and streams on a pool use the pool's slots") {
  Concurrency gauge;
  for (const std::size_t capacity : {std::size_t{1}, std::size_t{3}}) {
    FiberPool pool({.capacity = capacity});
    std::vector<int> numbers(100);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::atomic<int> sum{0};
    const auto step = [&](int i) {
      const Concurrency::Stay stay(gauge);
      this_fiber::yield();
      sum += i;
      return 2 * i;
    };
    const auto all = [&] {
      for_each(pool, numbers, step, {.max_running = 8});
      const std::vector<int> doubled = transform(pool, numbers, step);
      CHECK(doubled[99] == 198);
      int next = 0;
      OrderedStream<int> stream(pool, 8, [&](int i) { CHECK(i == 2 * next++); });
      for (const int i : numbers) CHECK(stream.submit([&step, i] { return step(i); }));
      stream.finish();
      CHECK(next == 100);
    };
    all();
    CHECK(gauge.most() <= capacity);
    pool.run(all);  // The task gives its slot back while it waits.
    CHECK(sum == 6 * 4950);
    CHECK_THROWS_WITH(for_each(pool, numbers, [](int) { throw std::runtime_error("a step"); }),
                      "a step");
  }
}

FIBER_TEST_CASE("parallel loops and streams over a pool report refused or dropped tasks") {
  Full full;
  const std::vector<int> numbers(10);
  CHECK_THROWS_AS(for_each(full.pool, numbers, [](int) {}), std::system_error);
  OrderedStream<int> stream(full.pool, 4, [](int) { FAIL_CHECK("refused"); });
  Connection connection;
  CHECK(stream.submit([&connection] { return *connection.number; }) == Errc::full);
  stream.finish();
  Full queued(OnFull::block);
  FiberPool with_queue({.capacity = 1, .queue_capacity = 4});
  with_queue.go([&] { queued.release.wait(); });
  wait_until_true([&] { return with_queue.stats().busy == 1; });
  OrderedStream<int> dropped(with_queue, 4, [](int) { FAIL_CHECK("dropped"); });
  CHECK(dropped.submit([] { return 1; }));
  with_queue.close(Close::discard);
  CHECK_THROWS_AS(dropped.finish(), std::system_error);
  queued.release.set();
}

FIBER_TEST_CASE("a pool refuses options that would have no effect") {
  FiberPool parent({.capacity = 2});
  CHECK_THROWS_AS(FiberPool({.wake_order = WakeOrder::fifo, .parent = &parent}),
                  std::invalid_argument);
  CHECK_THROWS_AS(FiberPool({.on_full = OnFull::reject, .max_blocked = 5}), std::invalid_argument);
}

FIBER_TEST_CASE("a task of run(), process() or async() has its caller's context") {
  FiberPool pool({.capacity = 2});
  FunctionPool<int> functions([](int) { CHECK(this_fiber::context() != nullptr); },
                              {.capacity = 1});
  const auto context_of_task = [] { return this_fiber::context(); };
  CHECK(pool.run(context_of_task) == nullptr);
  const Context context;
  const ContextScope scope(context);
  CHECK(pool.run(context_of_task) == &context);
  CHECK(pool.run([](std::stop_token) { return this_fiber::context(); }) == &context);
  functions.process(1);
  CHECK(pool.async(context_of_task).get()->is_within(context));
  functions.async(1).get();
  CHECK(pool.run([] { return this_fiber::context() != nullptr; }));
  CHECK(with_timeout(std::chrono::milliseconds(1), [&] {
    return pool.run(
        [] { return !this_fiber::sleep_for(std::chrono::hours(1), this_fiber::until()); });
  }));
}

TEST_SUITE_END();
