#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/event.hpp>
#include <weft/fiber_local.hpp>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/server.hpp>
#include <weft/latch.hpp>
#include <weft/mutex.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/semaphore.hpp>
#include <weft/sim.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>

#include "tests/support/fiber_test.hpp"

// Each case finds a bug that weft once had, and that tools/lab/put_back puts back into the source.
TEST_SUITE_BEGIN("sim/finds");

using namespace std::chrono_literals;
namespace net = weft::net;
namespace sim = weft::sim;

namespace {

sim::Options options() {
  const char* seeds = std::getenv("WEFT_SIM_SEEDS");
  return {.seeds = seeds == nullptr ? 50U : std::strtoull(seeds, nullptr, 10), .time_limit = 24h};
}

// Is a value that counts itself until its destructor, which parks, has ended.
struct Counted {
  explicit Counted(int& its_count) : count(&its_count) { ++*count; }
  Counted(Counted&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (count == nullptr) return;
    weft::this_fiber::yield();
    --*count;
  }
  int* count;
};

}  // namespace

TEST_CASE("a mutex is passed from each owner to the next waiter") {
  const weft::test::TestGuard guard("a mutex passes from each waiter to the next waiter");
  sim::explore(options(), [](sim::World&) {
    weft::Mutex mutex;
    std::vector<weft::JoinHandle<void>> fibers;
    for (int i = 0; i < 4; ++i) {
      fibers.push_back(weft::spawn([&] {
        for (int j = 0; j < 5; ++j) {
          const std::lock_guard lock(mutex);
          weft::this_fiber::yield();
        }
      }));
    }
    for (auto& fiber : fibers) fiber.join();
  });
}

TEST_CASE("a smaller acquire succeeds when the larger acquire ahead of it gives up") {
  const weft::test::TestGuard guard("a waiter that gives up lets smaller demands through");
  sim::explore(options(), [](sim::World&) {
    weft::Semaphore semaphore(1);
    auto large = weft::spawn([&] { (void)semaphore.try_acquire_until(10ms, 2); });
    auto small = weft::spawn([&] { semaphore.acquire(1); });
    small.join();
    large.join();
  });
}

TEST_CASE("a timer that is reset wakes the fiber that waits for the timer") {
  const weft::test::TestGuard guard("a timer that is set wakes the fiber that waits");
  sim::explore(options(), [](sim::World&) {
    weft::Timer timer;  // It is never due.
    auto waits = weft::spawn([&] { timer.wait(); });
    weft::this_fiber::yield();
    (void)timer.reset(10ms);
    waits.join();
  });
}

TEST_CASE("a short sleep ends on time while another fiber has a longer sleep") {
  const weft::test::TestGuard guard("no sleep is late because another sleep is longer");
  sim::explore(options(), [](sim::World&) {
    auto longer = weft::spawn([] { weft::this_fiber::sleep_for(1h); });
    auto shorter = weft::spawn([] {
      const auto before = weft::Clock::now();
      weft::this_fiber::sleep_for(1s);
      sim::check(weft::Clock::now() - before < 2s, "the sleep is not late");
    });
    shorter.join();
    longer.join();
  });
}

TEST_CASE("a client repeats a request when the server has just closed the idle connection") {
  const weft::test::TestGuard guard("a request on a closed connection is made again");
  sim::explore(options(), [](sim::World& world) {
    world.network().latency(1ms, 50ms);
    world.host("server", [] {
      weft::http::Server server([](auto&, auto& response) { (void)response.send("x"); },
                                {.limits = {.idle = 1s}});
      auto listener = net::TcpListener::listen(net::Address::any_v4(80));
      (void)server.serve(listener.value);
    });
    world.run_for(1ms);
    weft::http::Client client;
    for (int i = 0; i < 10; ++i) {
      auto [reply, error] = client.get("http://server/", 30s);
      sim::check(!error && reply.read_all().value == "x", "each request is answered");
      world.run_for(900ms + std::chrono::milliseconds(sim::random(150)));
    }
  });
}

TEST_CASE("a submitter that waits for room in a pool is admitted when a slot becomes free") {
  const weft::test::TestGuard guard("a submitter that waits for room in a pool gets it");
  sim::explore(options(), [](sim::World&) {
    weft::FiberPool pool({.capacity = 2, .queue_capacity = 0});
    std::vector<weft::JoinHandle<void>> fibers;
    for (int i = 0; i < 6; ++i) {
      fibers.push_back(weft::spawn([&] { (void)pool.submit([] { weft::this_fiber::yield(); }); }));
    }
    for (auto& fiber : fibers) fiber.join();
  });
}

TEST_CASE("a pool of capacity 1 runs each task that is submitted while its worker goes idle") {
  const weft::test::TestGuard guard("a pool of one worker runs each task");
  sim::explore(options(), [](sim::World&) {
    weft::FiberPool pool({.capacity = 1, .queue_capacity = 10});
    weft::Semaphore done(0);
    for (int i = 0; i < 3; ++i) {
      (void)pool.submit([&] { done.release(); });
      done.acquire();
      weft::this_fiber::sleep_for(std::chrono::microseconds(sim::random(3)));
    }
  });
}

TEST_CASE("a task keeps its slot until its unused result has been destroyed") {
  const weft::test::TestGuard guard("a result that no caller awaits is destroyed in the slot");
  sim::explore(options(), [](sim::World&) {
    int count = 0;
    weft::FiberPool pool({.capacity = 1, .queue_capacity = 10});
    (void)pool.async([&] { return Counted(count); });
    for (std::uint64_t i = sim::random(5); i != 0; --i) weft::this_fiber::yield();
    pool.wait_idle();
    sim::check(count == 0, "an idle pool has no result");
  });
}

TEST_CASE(
    "a retired worker has no slot to give back when its FiberLocal destructor waits for a task") {
  const weft::test::TestGuard guard("a retired worker has no slot to return");
  struct Kept {
    weft::FiberPool* pool = nullptr;
    weft::Event* is_gone = nullptr;
    ~Kept() {
      if (pool->is_closed_hint()) return;
      pool->run([this] {
        weft::PoolStats stats = pool->stats();
        // The retired worker releases its place when it waits, which may be later.
        for (; stats.live > 1; stats = pool->stats()) weft::this_fiber::yield();
        sim::check(stats.busy == 1, "the pool counts the task that runs");
      });
      is_gone->set();
    }
  };
  static weft::FiberLocal<Kept> kept;
  sim::explore(options(), [](sim::World&) {
    weft::Event is_gone;
    weft::Latch both(2);
    weft::FiberPool pool({.capacity = 2});
    for (int i = 0; i < 2; ++i) {
      (void)pool.submit([&] {
        kept->pool = &pool;
        kept->is_gone = &is_gone;
        both.arrive_and_wait();
      });
    }
    pool.wait_idle();
    pool.resize(1);
    is_gone.wait();
  });
}

TEST_CASE("a task of a sub-pool runs even though a heavy task of the parent waits for slots") {
  const weft::test::TestGuard guard("a task of a sub-pool runs although a heavy one has no room");
  sim::explore(options(), [](sim::World&) {
    // No worker retires: a worker that starts the fiber for that looks for a task again.
    weft::FiberPool parent({.capacity = 2, .queue_capacity = 2, .idle_timeout = weft::kNever});
    weft::FiberPool sub({.capacity = 1, .queue_capacity = 1, .parent = &parent});
    weft::Semaphore has_run(0);
    weft::Semaphore ends(0);
    (void)parent.submit([&] { has_run.acquire(); });
    (void)parent.submit([&] { ends.acquire(); });
    (void)parent.submit({.priority = weft::Priority::low, .weight = 2}, [] {});
    auto submitter = weft::spawn([&] { (void)sub.submit([&] { has_run.release(); }); });
    weft::this_fiber::sleep_for(1ms);
    ends.release();
    submitter.join();
    parent.wait_idle();
  });
}

TEST_CASE("join() of a cancelled pool returns after the dropped tasks are destroyed") {
  const weft::test::TestGuard guard("a join of a cancelled pool waits for dropped tasks");
  sim::explore(options(), [](sim::World&) {
    int count = 0;
    weft::FiberPool pool({.capacity = 1, .queue_capacity = 10});
    (void)pool.submit([] { weft::this_fiber::sleep_for(1us); });
    for (int i = 0; i < 3; ++i) (void)pool.submit([counted = Counted(count)] {});
    auto closer = weft::spawn([&] { pool.close(weft::Close::cancel); });
    while (!pool.is_closed_hint()) weft::this_fiber::yield();
    pool.join();
    sim::check(count == 0, "the dropped tasks are destroyed");
    closer.join();
  });
}

TEST_CASE("a task of a group whose max_running is reached may spawn another task of the group") {
  const weft::test::TestGuard guard("a task of a group at its limit starts another one");
  sim::explore(options(), [](sim::World&) {
    weft::TaskGroup group({.max_running = 2});
    for (int i = 0; i < 2; ++i) {
      group.spawn([&] { group.spawn([] { weft::this_fiber::yield(); }); });
    }
    group.wait();
  });
}

TEST_CASE("an idle connection is closed when its server stops") {
  const weft::test::TestGuard guard("a connection between two requests ends");
  sim::explore(options(), [](sim::World& world) {
    auto listener = net::TcpListener::listen(net::Address::any_v4(7));
    const auto read_two = [](net::Connection& connection) {
      std::array<std::byte, 2> two{};
      return connection.bytes().read_exactly(two).error ? net::Next::close : net::Next::idle;
    };
    net::Server server(read_two, {.grace = 1h});
    auto serving = weft::spawn([&] { (void)server.serve(listener.value); });
    auto client = weft::spawn([&] {
      auto stream = net::dial("world:7");
      const std::array<std::byte, 1> one{};
      for (int i = 0; i < 6 && !stream.value.write_all(one).error; ++i) world.run_for(10ms);
      (void)stream.value.wait_readable();
    });
    world.run_for(std::chrono::milliseconds(10 + sim::random(50)));
    server.stop();
    serving.join();
    sim::check(world.now() < 1min, "the server ends long before its grace");
    client.join();
  });
}

TEST_CASE(
    "shutdown() called by a handler returns even though a request waits for the handler's slot") {
  const weft::test::TestGuard guard("a handler's shutdown returns although a request waits");
  sim::explore(options(), [](sim::World& world) {
    weft::http::Server* running = nullptr;
    weft::http::Server server(
        [&](auto&, auto& response) {
          world.run_for(std::chrono::milliseconds(sim::random(20)));
          (void)running->shutdown(1s);
          (void)response.send("x");
        },
        {.max_running = 1, .max_queued = 1});
    running = &server;
    auto listener = net::TcpListener::listen(net::Address::any_v4(80));
    auto serving = weft::spawn([&] { (void)server.serve(listener.value); });
    weft::TaskGroup clients;
    for (int i = 0; i < 2; ++i) {
      clients.spawn([] {
        weft::http::Client client;
        (void)client.get("http://world/", 1h);
      });
    }
    clients.wait();
    serving.join();
  });
}

TEST_SUITE_END();
