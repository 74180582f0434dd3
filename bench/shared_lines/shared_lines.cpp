// Counts how often each operation writes to cache lines that other cores also use.
//
//   shared_lines                       a table, for 1 and 4 workers
//   shared_lines --workers 4 --detail yield   where in the source, and which lines
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/shared_lines/ledger.hpp"

namespace weft::bench {

namespace {

using counting::Ledger;

constexpr int kTimes = 4'000;

// The accesses between start and stop are counted, and divided by the number of operations.
struct Operation {
  std::string name;
  int count;
  std::function<void()> run;  // Called in a fiber.
};

void count_spawns() {
  for (int round = 0; round < kTimes / 100; ++round) {
    WaitGroup group;
    group.add(100);
    for (int i = 0; i < 100; ++i) go([&group] { group.done(); });
    group.wait();
  }
}

// Counts either the spawns of a batch (`spawning`) or its run, but not both.
void count_half_of_batches(bool spawning) {
  Ledger::stop();
  WaitGroup group;
  if (spawning) Ledger::start();
  for (int i = 0; i < 100; ++i) {
    group.add();
    go([&group] { group.done(); });
  }
  if (spawning) {
    Ledger::stop();
  } else {
    Ledger::start();
  }
  group.wait();
  Ledger::stop();
}

void count_yields() {
  bool stop = false;
  auto partner = spawn([&stop] {
    while (!stop) this_fiber::yield();
  });
  for (int i = 0; i < kTimes / 2; ++i) this_fiber::yield();
  stop = true;
  partner.join();
}

void count_wakes(const std::function<void(const std::function<void()>&)>& by_another) {
  Semaphore ping(0);
  Semaphore pong(0);
  WaitGroup other;  // The partner may be a detached thread.
  other.add();
  auto partner = spawn([&] {
    for (int i = 0; i < kTimes; ++i) {
      ping.acquire();
      pong.release();
    }
  });
  by_another([&] {
    for (int i = 0; i < kTimes; ++i) {
      ping.release();
      pong.acquire();
    }
    other.done();
  });
  partner.join();
  other.wait();
}

void count_items() {
  Channel<int> channel(128);
  auto consumer = spawn([&channel] {
    for (int i = 0; i < kTimes; ++i) (void)channel.receive();
  });
  for (int i = 0; i < kTimes; ++i) (void)channel.send(i);
  consumer.join();
}

// Two fibers pass a value back and forth; each receive has a deadline that does not expire.
void count_deadlines() {
  Channel<int> ping(1);  // Buffered, so that only the receiver waits.
  Channel<int> pong(1);
  const auto receive = [](Channel<int>& from) {
    std::optional<int> value;
    (void)from.receive_for(value, std::chrono::seconds(100));
  };
  auto partner = spawn([&] {
    for (int i = 0; i < kTimes / 2; ++i) {
      receive(ping);
      (void)pong.send(i);
    }
  });
  for (int i = 0; i < kTimes / 2; ++i) {
    (void)ping.send(i);
    receive(pong);
  }
  partner.join();
}

void count_locks(int fibers) {
  Mutex mutex;
  WaitGroup group;
  for (int fiber = 0; fiber < fibers; ++fiber) {
    group.go([&mutex, fibers] {
      for (int i = 0; i < kTimes / fibers; ++i) {
        mutex.lock();
        mutex.unlock();
      }
    });
  }
  group.wait();
}

void count_pool_tasks() {
  FiberPool pool({.capacity = 8});
  WaitGroup group;
  group.add(kTimes);
  for (int i = 0; i < kTimes; ++i) {
    (void)pool.submit([&group] { group.done(); });
  }
  group.wait();
}

void count_accepts() {
  net::TcpListener listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const auto address = listener.local_address().value;
  auto acceptor = spawn([&listener] {
    for (int i = 0; i < kTimes / 40; ++i) (void)listener.accept();
  });
  for (int i = 0; i < kTimes / 40; ++i) {
    const auto stream = net::TcpStream::connect(address);
    this_fiber::yield();
  }
  acceptor.join();
}

// In each round, 64 fibers compute for 50 us each; steals cause most of the accesses.
void compute_apart() {
  for (int round = 0; round < 20; ++round) {
    WaitGroup group;
    for (int i = 0; i < 64; ++i) {
      group.go([] {
        for (const auto until = Deadline::after(std::chrono::microseconds(50)); !until.passed();) {
        }
      });
    }
    group.wait();
  }
}

std::vector<Operation> operations() {
  return {
      {"spawn", 100, [] { count_half_of_batches(true); }},
      {"start, end and done() of a WaitGroup", 100, [] { count_half_of_batches(false); }},
      {"spawn, start, end, done()", kTimes, &count_spawns},
      {"spawn and join", kTimes,
       [] {
         for (int i = 0; i < kTimes; ++i) (void)spawn([i] { return i; }).join();
       }},
      {"yield", kTimes, &count_yields},
      {"park and wake, semaphore", 2 * kTimes,
       [] { count_wakes([](const auto& body) { body(); }); }},
      {"park and wake, by a plain thread", 2 * kTimes,
       [] { count_wakes([](const auto& body) { std::thread(body).detach(); }); }},
      {"channel: an item, buffered", kTimes, &count_items},
      {"receive with a deadline", kTimes, &count_deadlines},
      {"mutex: lock and unlock", kTimes, [] { count_locks(1); }},
      {"mutex: lock and unlock, 8 fibers", kTimes, [] { count_locks(8); }},
      {"pool: submit and run", kTimes, &count_pool_tasks},
      {"accept and close", kTimes / 40, &count_accepts},
      {"spread computation, 50 us a fiber", 20 * 64, &compute_apart},
  };
}

void print_detail(double count) {
  std::printf("  per operation:  loads  stores    rmws fetched   taken  where\n");
  for (const counting::Site& site : Ledger::sites()) {
    const counting::Counts& counts = site.counts;
    const auto each = [count](std::uint64_t number) { return static_cast<double>(number) / count; };
    if (each(counts.loads + counts.writes()) < 0.01) continue;
    std::printf("                %7.2f %7.2f %7.2f %7.2f %7.2f  %s  %s\n", each(counts.loads),
                each(counts.stores), each(counts.exchanges), each(counts.fetched),
                each(counts.taken), site.place.c_str(), site.function.c_str());
  }
  std::printf("  lines that moved most:\n");
  std::size_t shown = 0;
  for (const counting::LineUse& line : Ledger::lines()) {
    if (line.counts.moves() == 0 || ++shown > 8) break;
    std::printf(
        "  %.2f moves, %.2f writes, %u threads:", static_cast<double>(line.counts.moves()) / count,
        static_cast<double>(line.counts.writes()) / count, line.threads);
    for (const std::string& place : line.places) std::printf(" %s", place.c_str());
    std::printf("\n");
  }
}

void measure(const Operation& operation, unsigned workers, bool in_detail) {
  RuntimeOptions options;
  options.workers = workers;
  Runtime runtime(options);
  runtime.run([&] {
    operation.run();  // Warms up caches and allocators.
    Ledger::start();
    operation.run();
    Ledger::stop();
  });
  const counting::Counts total = Ledger::total();
  const auto count = static_cast<double>(operation.count);
  const auto each = [count](std::uint64_t number) { return static_cast<double>(number) / count; };
  std::printf("%-40s %7u %7.2f %7.2f %7.2f %9.2f %7.2f %7.2f\n", operation.name.c_str(), workers,
              each(total.stores), each(total.exchanges), each(Ledger::fences()),
              each(Ledger::writes_to_shared_lines()), each(total.fetched), each(total.taken));
  if (in_detail) print_detail(count);
}

int main(int argc, char** argv) {
  CLI::App app("Counts writes to the library's atomics, by operation.");
  std::vector<unsigned> workers{1, 4};
  std::string detail;
  app.add_option("--workers", workers);
  app.add_option("--detail", detail, "Only this operation, place by place");
  CLI11_PARSE(app, argc, argv);
  std::printf("%-40s %7s %7s %7s %7s %9s %7s %7s\n", "per operation", "workers", "stores", "rmws",
              "fences", "to shared", "fetched", "taken");
  for (const Operation& operation : operations()) {
    if (!detail.empty() && detail != operation.name) continue;
    for (const unsigned count : workers) measure(operation, count, !detail.empty());
  }
  return 0;
}

}  // namespace

}  // namespace weft::bench

int main(int argc, char** argv) { return weft::bench::main(argc, argv); }
