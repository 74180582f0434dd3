// Causes data races between the fibers of one world, for a build with -Dno_sync=true:
//
//   races WHAT SEEDS
//
// tests/races/check runs it. Exit status 3 means that the world has failed.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/semaphore.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>

namespace {

using namespace std::chrono_literals;
namespace net = weft::net;
namespace sim = weft::sim;

// Never inlined, so that the sanitizer's report names it.
[[gnu::noinline]] void add_unordered(int& number) { number = number + 1; }

// Lets two fibers add to a number; `around` makes each addition.
void add_twice(const std::function<void(const std::function<void()>&)>& around) {
  int number = 0;
  const auto add = [&] {
    weft::this_fiber::yield();
    around([&] { add_unordered(number); });
    weft::this_fiber::yield();
  };
  auto one = weft::spawn(add);
  auto other = weft::spawn(add);
  one.join();
  other.join();
  sim::check(number == 2, "both have added");
}

void add_with_nothing(sim::World&) {
  add_twice([](const auto& add) { add(); });
}

void add_under_mutex(sim::World&) {
  weft::Mutex mutex;
  add_twice([&](const auto& add) {
    const std::lock_guard lock(mutex);
    add();
  });
}

void add_under_semaphore(sim::World&) {
  weft::Semaphore semaphore(1);
  add_twice([&](const auto& add) {
    semaphore.acquire();
    add();
    semaphore.release();
  });
}

void hand_over_by_channel(sim::World&) {
  weft::Channel<int*> channel;
  auto receiver = weft::spawn([&] { add_unordered(**channel.receive()); });
  int number = 0;
  add_unordered(number);
  (void)channel.send(&number);
  receiver.join();
  add_unordered(number);
}

// The accesses are ordered if the first fiber is faster; otherwise they are a race.
void trust_the_order(sim::World&) {
  weft::Mutex mutex;
  bool is_done = false;
  int number = 0;
  auto one = weft::spawn([&] {
    weft::this_fiber::yield();
    add_unordered(number);
    const std::lock_guard lock(mutex);
    is_done = true;
  });
  auto other = weft::spawn([&] {
    for (auto i = sim::random(10); i > 0; --i) weft::this_fiber::yield();
    {
      const std::lock_guard lock(mutex);
      if (is_done) std::fputs("the usual order\n", stderr);
    }
    add_unordered(number);
  });
  one.join();
  other.join();
}

// Uses hosts, streams, datagrams and faults, and reads all of them in the body.
void use_everything(sim::World& world) {
  world.network().latency(1ms, 5ms).loss(0.05).duplication(0.05);
  int number = 0;
  const auto serve = [&] {
    auto listener = net::TcpListener::listen(net::Address::any_v4(7));
    (void)net::serve(listener.value, [&](net::ByteStream& stream) {
      std::array<std::byte, 10> bytes{};
      while (!stream.read_exactly(bytes).error) {
        add_unordered(number);
        if (stream.write_all(bytes).error) return;
      }
    });
  };
  world.host("server", serve);
  world.run_for(1ms);
  auto [stream, error] = net::dial("server:7");
  sim::check(!error, "the server answers");
  std::array<std::byte, 10> bytes{};
  for (int i = 0; i < 20; ++i) {
    add_unordered(number);
    sim::check(!stream.write_all(bytes).error && !stream.read_exactly(bytes).error, "an echo");
  }
  std::map<std::string, int> files;
  world.host("writer", [&] { ++files["a"]; });
  world.disturb({.partitions = 2, .restarts = 2, .stops = 2, .within = 10s});
  world.run_for(1min);
  sim::check(files.at("a") >= 1, "the writer has run");
  auto waits = weft::spawn([&] { add_unordered(number); });
  sim::settle();
  add_unordered(number);
  waits.join();
}

const std::map<std::string, void (*)(sim::World&)> kBodies{
    {"nothing", &add_with_nothing},      {"mutex", &add_under_mutex},
    {"semaphore", &add_under_semaphore}, {"channel", &hand_over_by_channel},
    {"order", &trust_the_order},         {"everything", &use_everything},
};

}  // namespace

int main(int, char** argv) {
  try {
    (void)sim::explore({.seeds = std::strtoull(argv[2], nullptr, 10)}, kBodies.at(argv[1]));
  } catch (const sim::Failure& failure) {
    std::puts(failure.what());
    return 3;
  }
  return 0;
}
