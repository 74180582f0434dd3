// Measures on this machine the costs that bench/model/costs.json holds, and prints them.
//
// Each figure is the median of several rounds. What one fiber does is measured in a runtime of one
// worker; what two cores do, by two plain threads. Run it on an idle machine, several times.
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <semaphore>
#include <thread>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

namespace weft::bench::model {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 15;

std::int64_t now() { return Clock::now().time_since_epoch().count(); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void print(const char* name, double nanoseconds) {
  std::printf("  \"%s\": %.1f,\n", name, nanoseconds);
}

// Nanoseconds of one `step` of a loop.
double per_step(int steps, const std::function<void(int)>& loop) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t start = now();
    loop(steps);
    rounds.push_back(static_cast<double>(now() - start) / steps);
  }
  return median(rounds);
}

// --- Fibers on one worker ------------------------------------------------------------------------

// A batch of no-ops: what their spawning costs, and what running and ending them does.
void measure_spawn_and_run() {
  constexpr int kBatch = 100;
  std::vector<double> spawns;
  std::vector<double> runs;
  for (int round = 0; round < 400; ++round) {
    WaitGroup group;
    group.add(kBatch);
    const std::int64_t start = now();
    for (int i = 0; i < kBatch; ++i) go([&group] { group.done(); });
    const std::int64_t spawned = now();
    group.wait();
    spawns.push_back(static_cast<double>(spawned - start) / kBatch);
    runs.push_back(static_cast<double>(now() - spawned) / kBatch);
  }
  print("spawn", median(spawns));
  print("run_new", median(runs));
}

// Two fibers wake each other by turns, so that a round has two parks, two wakes, two switches.
void measure_park_and_wake() {
  Semaphore ping(0);
  Semaphore pong(0);
  bool stop = false;
  auto partner = spawn([&] {
    for (;;) {
      ping.acquire();
      if (stop) break;
      pong.release();
    }
  });
  print("park_wake_switch", per_step(20'000, [&](int steps) {
                              for (int i = 0; i < steps; ++i) {
                                ping.release();
                                pong.acquire();
                              }
                            }) / 2);
  stop = true;
  ping.release();
  partner.join();
}

void measure_spawn_join() {
  print("spawn_and_join", per_step(20'000, [](int steps) {
          for (int i = 0; i < steps; ++i) (void)spawn([i] { return i; }).join();
        }));
}

// --- Cache lines between two cores ---------------------------------------------------------------

struct alignas(128) Line {
  std::atomic<std::uint32_t> value{0};
};

// Two threads take turns at a line: each hand-over moves it once.
void measure_transfer() {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    constexpr std::uint32_t kTurns = 100'000;
    Line line;
    std::thread other([&line] {
      for (std::uint32_t turn = 1; turn < kTurns; turn += 2) {
        while (line.value.load(std::memory_order_acquire) != turn) {
        }
        line.value.store(turn + 1, std::memory_order_release);
      }
    });
    const std::int64_t start = now();
    for (std::uint32_t turn = 0; turn < kTurns; turn += 2) {
      while (line.value.load(std::memory_order_acquire) != turn) {
      }
      line.value.store(turn + 1, std::memory_order_release);
    }
    other.join();
    rounds.push_back(static_cast<double>(now() - start) / kTurns);
  }
  print("hand_over_of_a_line", median(rounds));
}

// Lines that another core has written are read, then written: one miss each, nothing overlaps.
void measure_misses() {
  constexpr std::size_t kLines = 4096;
  std::vector<Line> lines(kLines);
  std::vector<double> reads;
  std::vector<double> writes;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool writing : {false, true}) {
      std::thread([&lines] {
        for (Line& line : lines) line.value.store(0, std::memory_order_relaxed);
      }).join();
      std::size_t at = 0;
      const std::int64_t start = now();
      for (std::size_t i = 0; i < kLines; ++i) {
        // The next address depends on the value, and the order is not one that is prefetched.
        const std::uint32_t value = writing ? lines[at].value.fetch_add(1)
                                            : lines[at].value.load(std::memory_order_relaxed);
        at = (at + 1'597 + value) % kLines;
      }
      const double each = static_cast<double>(now() - start) / kLines;
      (writing ? writes : reads).push_back(each);
    }
  }
  print("read_of_a_line_written_elsewhere", median(reads));
  print("write_of_a_line_written_elsewhere", median(writes));
}

// --- The kernel ----------------------------------------------------------------------------------

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  (void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<std::uint32_t>& word) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void print_spread(const char* name, std::vector<double> values) {
  std::ranges::sort(values);
  std::printf("  \"%s\": {\"p10\": %.0f, \"p50\": %.0f, \"p99\": %.0f},\n", name,
              values[values.size() / 10], values[values.size() / 2],
              values[values.size() * 99 / 100]);
}

// One thread sleeps and is woken by another that runs: what the waker's call costs, and when the
// sleeper runs. `pause` is how long it has slept by then.
void measure_thread_wake(const char* name, std::chrono::microseconds pause) {
  constexpr std::uint32_t kWakes = 2'000;
  std::atomic<std::uint32_t> word{0};
  std::atomic<std::int64_t> ran{0};
  std::thread sleeper([&] {
    for (std::uint32_t i = 0; i < kWakes; ++i) {
      while (word.load() == i) futex_wait(word, i);
      ran.store(now());
    }
  });
  std::vector<double> calls;
  std::vector<double> delays;
  for (std::uint32_t i = 0; i < kWakes; ++i) {
    // Busy, so that the waker's core is awake.
    for (const auto until = Clock::now() + pause; Clock::now() < until;) detail::pause_cpu();
    ran.store(0);
    const std::int64_t start = now();
    word.store(i + 1);
    futex_wake(word);
    calls.push_back(static_cast<double>(now() - start));
    while (ran.load() == 0) detail::pause_cpu();
    delays.push_back(static_cast<double>(ran.load() - start));
  }
  sleeper.join();
  print_spread((std::string(name) + "_call").c_str(), calls);
  print_spread((std::string(name) + "_until_it_runs").c_str(), delays);
}

void measure_polling() {
  const int epoll = epoll_create1(0);
  const int event = eventfd(0, EFD_NONBLOCK);
  epoll_event interest{};
  interest.events = EPOLLIN | EPOLLET;
  epoll_ctl(epoll, EPOLL_CTL_ADD, event, &interest);
  std::array<epoll_event, 128> events;
  print("poll_of_nothing", per_step(2'000, [&](int steps) {
          for (int i = 0; i < steps; ++i) (void)epoll_wait(epoll, events.data(), 128, 0);
        }));
  const std::uint64_t one = 1;
  const double write_and_poll = per_step(2'000, [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      (void)!write(event, &one, sizeof one);
      (void)epoll_wait(epoll, events.data(), 128, 0);
    }
  });
  print("eventfd_write_and_poll_of_one", write_and_poll);
  close(event);
  close(epoll);
}

void measure_small_things() {
  print("clock", per_step(100'000, [](int steps) {
          for (int i = 0; i < steps; ++i) (void)Deadline::now_nanoseconds();
        }));
  print("pauses_between_looks", per_step(10'000, [](int steps) {
          for (int i = 0; i < steps * 16; ++i) detail::pause_cpu();
        }));
  // The loads of one look at a victim, all in this core's cache.
  std::vector<std::array<Line, 4>> victims(16);
  print("look_at_a_cached_victim", per_step(10'000, [&](int steps) {
          std::uint32_t sum = 0;
          for (int i = 0; i < steps; ++i) {
            for (const Line& line : victims[static_cast<std::size_t>(i) % 16]) {
              sum += line.value.load(std::memory_order_acquire);
            }
          }
          std::atomic_signal_fence(std::memory_order_seq_cst);
          victims[0][0].value.store(sum & 0);
        }));
}

void measure_all() {
  RuntimeOptions options;
  options.workers = 1;
  run(options, [] {
    measure_spawn_and_run();
    measure_park_and_wake();
    measure_spawn_join();
    print("yield", per_step(20'000, [](int steps) {
            bool stop = false;
            auto partner = spawn([&stop] {
              while (!stop) this_fiber::yield();
            });
            for (int i = 0; i < steps / 2; ++i) this_fiber::yield();
            stop = true;
            partner.join();
          }));
  });
  measure_transfer();
  measure_misses();
  measure_thread_wake("wake_after_20_us", std::chrono::microseconds(20));
  measure_thread_wake("wake_after_300_us", std::chrono::microseconds(300));
  measure_polling();
  measure_small_things();
}

}  // namespace

}  // namespace weft::bench::model

int main() {
  std::puts("{");
  weft::bench::model::measure_all();
  std::puts("  \"unit\": \"nanoseconds\"\n}");
}
