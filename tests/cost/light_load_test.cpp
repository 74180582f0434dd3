// If one worker could do all the work, a request or a tick must cost no more sleeps and wakes of
// workers with many workers than with one. The tests check counts of the runtime, not times.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "base/shake.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int kConnections = 8;
constexpr int kRequests = 200;
constexpr int kTicks = 50;
// If the machine preempts the worker, other workers take over, so the test uses the best of several
// rounds.
constexpr int kRounds = 10;
// The limit per request or tick. A single worker sleeps once, and wakes no other worker.
constexpr double kMostSleeps = 1.2;
constexpr double kMostWakes = 0.2;

// Answers each byte that arrives, until the other side closes.
void serve(int descriptor) {
  auto watch = std::move(weft::io::Watch::adopt(descriptor).value);
  char byte = 0;
  for (;;) {
    const ssize_t count = ::recv(descriptor, &byte, 1, MSG_DONTWAIT);
    if (count == 0) return;
    if (count == 1) {
      CHECK(::send(descriptor, &byte, 1, MSG_NOSIGNAL) == 1);
    } else {
      (void)watch.wait(weft::io::Ready::read);
    }
  }
}

// Opens a TCP connection with two blocking ends. (With a Unix socket, each read at one end is an
// event at the other end.)
struct Ends {
  int client = -1;
  int server = -1;
};
Ends connect_to_self() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const anywhere = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener, anywhere, size) == 0);
  REQUIRE(::listen(listener, 1) == 0);
  REQUIRE(::getsockname(listener, anywhere, &size) == 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::connect(client, anywhere, size) == 0);
  const int server = ::accept(listener, nullptr, nullptr);
  REQUIRE(server >= 0);
  ::close(listener);
  return {client, server};
}

struct Costs {
  double sleeps = 1e9;
  double wakes = 1e9;
};

// Returns the average costs since `before` of `count` requests or ticks.
Costs costs_since(const weft::RuntimeStats& before, const weft::Runtime& runtime, int count) {
  const weft::RuntimeStats after = runtime.stats();
  return {static_cast<double>(after.worker_sleeps - before.worker_sleeps) / count,
          static_cast<double>(after.worker_wakeups - before.worker_wakeups) / count};
}

// Checks that the lowest costs of several rounds are within the bounds.
template <class Round>
void check_costs(Round measure_round) {
  Costs best;
  for (int round = 0; round < kRounds; ++round) {
    const Costs costs = measure_round();
    best = {std::min(best.sleeps, costs.sleeps), std::min(best.wakes, costs.wakes)};
    if (best.sleeps <= kMostSleeps && best.wakes <= kMostWakes) break;
  }
  CHECK(best.sleeps <= kMostSleeps);
  CHECK(best.wakes <= kMostWakes);
}

// Makes one request after the other, each on a connection that has been idle for a while.
Costs measure_round(const weft::Runtime& runtime, const std::vector<int>& clients) {
  const weft::RuntimeStats before = runtime.stats();
  for (int i = 0; i < kRequests; ++i) {
    const int client = clients[static_cast<std::size_t>(i) % clients.size()];
    char byte = 'x';
    REQUIRE(::send(client, &byte, 1, MSG_NOSIGNAL) == 1);
    REQUIRE(::recv(client, &byte, 1, 0) == 1);
    std::this_thread::sleep_for(100us);
  }
  return costs_since(before, runtime, kRequests);
}

TEST_SUITE_BEGIN("cost/light_load");

THREAD_TEST_CASE_WITH(
    "each request causes only one sleep of a worker, regardless of the number of workers",
    {.workers = {1, 2, 4, 8, 16}, .monitored = true}) {
  const weft::base::shake::Still still;
  std::vector<int> clients;
  weft::WaitGroup served;
  for (int i = 0; i < kConnections; ++i) {
    const Ends ends = connect_to_self();
    clients.push_back(ends.client);
    served.add(1);
    weft::go([&served, server = ends.server] {
      serve(server);
      served.done();
    });
  }
  (void)measure_round(runtime, clients);
  check_costs([&] { return measure_round(runtime, clients); });
  for (const int client : clients) ::close(client);
  served.wait();
}

THREAD_TEST_CASE_WITH(
    "a fiber's 1 ms sleep causes only one sleep of a worker, regardless of the number of workers",
    {.workers = {1, 2, 4, 8, 16}, .monitored = true}) {
  const weft::base::shake::Still still;
  check_costs([&] {
    const weft::RuntimeStats before = runtime.stats();
    weft::WaitGroup ticked;
    ticked.go([] {
      for (int i = 0; i < kTicks; ++i) weft::this_fiber::sleep_for(1ms);
    });
    ticked.wait();
    return costs_since(before, runtime, kTicks);
  });
}

THREAD_TEST_CASE_WITH("idle workers stay asleep while a fiber waits for data from the kernel",
                      {.workers = {1, 3, 16}, .monitored = true}) {
  const weft::base::shake::Still still;
  const Ends ends = connect_to_self();
  weft::WaitGroup served;
  served.go([&] { serve(ends.server); });
  // Waits until the first search for a deadlock, and until unused memory has been released.
  std::this_thread::sleep_for(400ms);
  bool is_quiet = false;
  for (int round = 0; round < kRounds && !is_quiet; ++round) {
    const std::uint64_t before = runtime.stats().worker_sleeps;
    std::this_thread::sleep_for(500ms);
    is_quiet = runtime.stats().worker_sleeps == before;
  }
  CHECK(is_quiet);
  ::close(ends.client);
  served.wait();
}

TEST_SUITE_END();

}  // namespace
