// The std::thread side of the comparison: one workload per process, one JSON line of results.
//
// Each fiber is a kernel thread, which uses the standard library's mutexes and condition variables.
// The number of workers is the number of processors that the process may use. Rows that would take
// minutes use a part of the count; they report a time per item, which does not depend on the count.
// Rows that report a total time for 100 000 or a million fibers are left out, because a system
// cannot have that many threads.

#include <sched.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>

#include "bench/latency.hpp"
#include "bench/rivals/program.hpp"

namespace {

using namespace rivals;

constexpr std::size_t kBatch = 100;

template <class T>
class Channel {
 public:
  explicit Channel(std::size_t capacity) : capacity_(capacity) {}
  void send(T value) {
    {
      std::unique_lock lock(mutex_);
      not_full_.wait(lock, [this] { return values_.size() < capacity_; });
      values_.push(value);
    }
    not_empty_.notify_one();
  }
  std::optional<T> receive() {
    std::optional<T> value;
    {
      std::unique_lock lock(mutex_);
      not_empty_.wait(lock, [this] { return !values_.empty() || closed_; });
      if (values_.empty()) return value;
      value = values_.front();
      values_.pop();
    }
    not_full_.notify_one();
    return value;
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
  }

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::queue<T> values_;
  bool closed_ = false;
};

template <std::size_t kThreads, class Body>
void run_threads(Body body) {
  std::array<std::thread, kThreads> threads;
  for (std::thread& thread : threads) thread = std::thread(body);
  for (std::thread& thread : threads) thread.join();
}

// Uses a hundredth of the count.
Metrics spawn_batches(const Request& request) {
  const auto run = [](std::int64_t batches) {
    for (std::int64_t batch = 0; batch < batches; ++batch) run_threads<kBatch>([] {});
  };
  const auto batches = std::max<std::int64_t>(1, request.count(20'000) / std::int64_t{kBatch});
  return {{"ns_per_fiber", per_unit(batches, run) / kBatch}};
}

// Uses a tenth of the count.
Metrics yield_pair(const Request& request) {
  if (request.workers != 1) throw Refusal("W2 is defined on one worker.");
  const auto run = [](std::int64_t rounds) {
    run_threads<2>([rounds] {
      for (std::int64_t i = 0; i < rounds; ++i) std::this_thread::yield();
    });
  };
  return {{"ns_per_switch", per_unit(request.count(500'000), run) / 2}};
}

// Uses a tenth of the count. A channel with one place is the closest to a rendezvous here.
Metrics ping_pong(const Request& request) {
  Channel<std::int64_t> ping(1);
  Channel<std::int64_t> pong(1);
  std::thread partner([&] {
    while (const auto value = ping.receive()) pong.send(*value);
  });
  const auto run = [&](std::int64_t trips) {
    for (std::int64_t trip = 0; trip < trips; ++trip) {
      ping.send(trip);
      expect("reply", pong.receive().value(), trip);
    }
  };
  const double ns = per_unit(request.count(100'000), run);
  ping.close();
  partner.join();
  return {{"ns_per_round_trip", ns}};
}

// Uses a fifth of the count.
Metrics buffered_items(const Request& request) {
  const auto run = [](std::int64_t items) {
    Channel<std::int64_t> channel(128);
    std::int64_t sum = 0;
    std::thread consumer([&] {
      while (const auto item = channel.receive()) sum += *item;
    });
    for (std::int64_t item = 0; item < items; ++item) channel.send(item);
    channel.close();
    consumer.join();
    expect("sum", sum, items * (items - 1) / 2);
  };
  return {{"ns_per_item", per_unit(request.count(1'000'000), run)}};
}

Metrics contended_mutex(const Request& request) {
  constexpr std::int64_t kThreads = 8;
  const auto run = [](std::int64_t each) {
    std::mutex mutex;
    std::int64_t counter = 0;
    run_threads<kThreads>([&mutex, &counter, each] {
      for (std::int64_t i = 0; i < each; ++i) {
        const std::lock_guard lock(mutex);
        ++counter;
      }
    });
    expect("counter", counter, each * kThreads);
  };
  return {{"ns_per_op", per_unit(request.count(500'000), run) / kThreads}};
}

Metrics quantiles(std::vector<double> nanoseconds) {
  Metrics metrics;
  weft::bench::add_quantiles(metrics, "", std::move(nanoseconds));
  return metrics;
}

Metrics wake_idle(const Request& request) {
  const std::int64_t count = request.count(5'000);
  Channel<Clock::time_point> wakes(1);
  std::thread waker([&wakes, count] {
    for (std::int64_t i = 0; i < count; ++i) {
      std::this_thread::sleep_for(weft::bench::kWakePause);
      wakes.send(Clock::now());
    }
    wakes.close();
  });
  std::vector<double> latencies;
  while (const auto woken = wakes.receive()) latencies.push_back(nanoseconds_between(*woken));
  waker.join();
  expect("number of wakes", static_cast<std::int64_t>(latencies.size()), count);
  return quantiles(std::move(latencies));
}

Metrics wake_busy(const Request& request) {
  if (request.workers != 2) throw Refusal("W11_busy is about one worker and one other.");
  Channel<Clock::time_point> wakes(1);
  Channel<double> latencies(1);
  std::atomic<bool> stopped{false};
  std::thread bursts([&stopped] {
    while (!stopped.load()) {
      run_threads<weft::bench::kBurst>([] { weft::bench::compute(weft::bench::kShortWork); });
      std::this_thread::sleep_for(weft::bench::kBurstPause);
    }
  });
  std::thread woken([&wakes, &latencies] {
    while (const auto wake = wakes.receive()) latencies.send(nanoseconds_between(*wake));
  });
  std::vector<double> found;
  for (std::int64_t i = 0, count = request.count(10'000); i < count; ++i) {
    const auto now = Clock::now();
    wakes.send(now);
    weft::bench::compute_until(now + weft::bench::kWakerComputes);
    found.push_back(latencies.receive().value());
  }
  stopped.store(true);
  wakes.close();
  bursts.join();
  woken.join();
  return quantiles(std::move(found));
}

// Starts a thread for each arrival. The kernel shares the processors between the threads, so no
// thread waits for the end of another one.
Metrics mixed_load(const Request& request) {
  const auto interval = weft::bench::mixed_interval(static_cast<std::size_t>(request.workers));
  std::vector<double> since_arrival(static_cast<std::size_t>(request.count(20'000)) *
                                    static_cast<std::size_t>(request.workers));
  std::vector<double> since_spawn(since_arrival.size());
  std::atomic<std::size_t> left{since_arrival.size()};
  const auto start = Clock::now();
  for (std::size_t i = 0; i < since_arrival.size(); ++i) {
    const auto arrival = start + static_cast<Clock::rep>(i + 1) * interval;
    std::this_thread::sleep_until(arrival);
    std::thread([&, arrival, spawned = Clock::now(), i] {
      const auto now = Clock::now();
      since_arrival[i] = nanoseconds_between(arrival, now);
      since_spawn[i] = nanoseconds_between(spawned, now);
      weft::bench::compute(weft::bench::mixed_work(i));
      if (left.fetch_sub(1) == 1) left.notify_one();
    }).detach();
  }
  for (std::size_t now = left.load(); now > 0; now = left.load()) left.wait(now);
  Metrics metrics = quantiles(std::move(since_arrival));
  weft::bench::add_quantiles(metrics, "spawned_", std::move(since_spawn));
  return metrics;
}

// Restricts the process to the first `count` of the processors that it may use.
void use_processors(int count) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) throw std::runtime_error("No affinity.");
  if (CPU_COUNT(&usable) < count) throw Refusal("There are not so many processors.");
  for (int cpu = 0, kept = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &usable) && kept++ >= count) CPU_CLR(cpu, &usable);
  }
  if (sched_setaffinity(0, sizeof usable, &usable) != 0) throw std::runtime_error("No affinity.");
}

template <class Run>
auto on_processors(Run run) {
  return [run](const Request& request) {
    use_processors(request.workers);
    return run(request);
  };
}

}  // namespace

int main(int argc, char** argv) {
  const Program program{"std_thread",
                        "std::thread",
                        {{"W1", on_processors(spawn_batches)},
                         {"W2", on_processors(yield_pair)},
                         {"W3_pingpong", on_processors(ping_pong)},
                         {"W3_buffered", on_processors(buffered_items)},
                         {"W4", on_processors(contended_mutex)},
                         // The waker may use all processors, as it does in the other programs.
                         {"W11_idle", wake_idle},
                         {"W11_busy", on_processors(wake_busy)},
                         {"W11_mixed", on_processors(mixed_load)}}};
  return exit_code_of(program, argc, argv);
}
