// W13: many fibers compute and wait for their turn; measures how far the slowest falls behind.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/latency.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

namespace {

// Counts the turns of a fiber. Each count is on a separate cache line.
struct alignas(64) Turns {
  std::uint64_t count = 0;
  Clock::time_point last;
  double longest_gap = 0;

  void note(Clock::time_point now) {
    longest_gap =
        std::max(longest_gap, std::chrono::duration<double, std::nano>(now - last).count());
    last = now;
    ++count;
  }
};

Metrics metrics_of(const std::vector<Turns>& turns) {
  std::vector<std::uint64_t> counts;
  std::vector<double> gaps;
  for (const Turns& of_one : turns) {
    counts.push_back(of_one.count);
    gaps.push_back(of_one.longest_gap);
  }
  std::ranges::sort(counts);
  const auto median = static_cast<double>(counts[counts.size() / 2]);
  Metrics metrics;
  add_quantiles(metrics, "gap_", std::move(gaps));
  metrics["median_turns"] = median;
  // A fiber that never ran counts as half a turn, so that the quotient is defined.
  metrics["median_by_slowest"] =
      median / (counts.front() == 0 ? 0.5 : static_cast<double>(counts.front()));
  metrics["fastest_by_median"] = static_cast<double>(counts.back()) / std::max(median, 0.5);
  return metrics;
}

// Runs a plain thread that wakes fibers when they are about to wait.
class WakingThread {
 public:
  explicit WakingThread(std::size_t fibers) : asked_(fibers) {}
  // Relaxed: the flag publishes no other data.
  void ask_for(std::size_t fiber) { asked_[fiber].store(true, std::memory_order_relaxed); }
  template <class Wake>
  void begin(Wake wake) {
    thread_ = std::thread([this, wake] {
      while (!ended_) {
        for (std::size_t i = 0; i < asked_.size(); ++i) {
          if (asked_[i].exchange(false)) wake(i);
        }
      }
    });
  }
  void end() {
    ended_ = true;
    thread_.join();
  }

 private:
  std::vector<std::atomic<bool>> asked_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// Opens a socket for each fiber.
class Sockets {
 public:
  explicit Sockets(std::size_t fibers) {
    raise_descriptor_limit();
    for (std::size_t i = 0; i < fibers; ++i) pairs_.push_back(net::UnixStream::pair().value);
  }
  // Returns false if the other end has been closed.
  bool receive(std::size_t fiber) {
    std::byte byte{};
    return !pairs_[fiber].first.read_some(std::span(&byte, 1)).error;
  }
  void send_to(std::size_t fiber) {
    const std::byte byte{};
    (void)!::write(pairs_[fiber].second.native_handle(), &byte, 1);
  }
  void close() {
    for (auto& pair : pairs_) pair.second.close();
  }

 private:
  static void raise_descriptor_limit() {
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }

  std::vector<net::UnixStreamPair> pairs_;
};

struct Permit {
  Semaphore semaphore{0};
};

// The state that the fibers of a run share.
struct Crowd {
  Crowd(Waiting waiting, std::size_t fibers)
      : how(waiting),
        waker(fibers),
        permits(waiting == Waiting::thread ? fibers : 0),
        sockets(waiting == Waiting::socket ? fibers : 0) {}

  // Call start() when all fibers have begun. Fibers that wait for a channel are then parked;
  // otherwise the first fibers would have many turns before the last fibers arrive.
  void start() {
    started.store(true);
    if (how == Waiting::yield || how == Waiting::timer) return;
    this_fiber::sleep_for(kFairSleep * 10);
    if (how == Waiting::socket) {
      waker.begin([this](std::size_t fiber) { sockets.send_to(fiber); });
    } else if (how == Waiting::thread) {
      waker.begin([this](std::size_t fiber) { permits[fiber].semaphore.release(); });
    } else {
      for (std::size_t i = 0; i < kTokens; ++i) (void)tokens.send(0);
    }
  }
  void stop() {
    stopped.store(true);
    if (how == Waiting::socket || how == Waiting::thread) waker.end();
    for (Permit& permit : permits) permit.semaphore.release();
    sockets.close();
    tokens.close();
  }

  // Returns false at the end of the run.
  bool wait_for_turn(std::size_t fiber) {
    switch (how) {
      case Waiting::yield:
        this_fiber::yield();
        break;
      case Waiting::timer:
        this_fiber::sleep_for(kFairSleep);
        break;
      case Waiting::socket:
        waker.ask_for(fiber);
        if (!sockets.receive(fiber)) return false;
        break;
      case Waiting::thread:
        waker.ask_for(fiber);
        permits[fiber].semaphore.acquire();
        break;
      case Waiting::channel:
        if (!tokens.receive()) return false;
    }
    return !stopped.load(std::memory_order_relaxed);  // Relaxed: fibers may see it late.
  }
  void end_turn() {
    if (how == Waiting::channel) (void)tokens.send(0);
  }

  static constexpr std::size_t kTokens = 64;
  const Waiting how;
  std::atomic<std::size_t> begun{0};
  std::atomic<bool> started{false};
  std::atomic<bool> stopped{false};
  Channel<int> tokens{kTokens};
  WakingThread waker;
  std::vector<Permit> permits;
  Sockets sockets;
};

void take_turns(Crowd& crowd, std::size_t fiber, Turns& turns) {
  crowd.begun.fetch_add(1, std::memory_order_relaxed);
  const bool is_parked = crowd.how != Waiting::yield && crowd.how != Waiting::timer;
  while (!is_parked && !crowd.started.load(std::memory_order_relaxed)) this_fiber::yield();
  turns.last = Clock::now();
  while (crowd.wait_for_turn(fiber)) {
    turns.note(Clock::now());
    compute(kFairWork);
    crowd.end_turn();
  }
  turns.note(Clock::now());
  --turns.count;
}

}  // namespace

// The run is longer with more fibers, so that each fiber has some turns.
Metrics fair_turns(const Request& request, std::size_t fibers, Waiting how) {
  const auto duration = std::chrono::duration<double>(
      request.scale * std::max(1.0, static_cast<double>(fibers) / 2'000));
  Crowd crowd(how, fibers);
  std::vector<Turns> turns(fibers);
  WaitGroup group;
  group.add(fibers);
  for (std::size_t i = 0; i < fibers; ++i) {
    go([&crowd, i, &turns, &group] {
      take_turns(crowd, i, turns[i]);
      group.done();
    });
  }
  while (crowd.begun.load(std::memory_order_relaxed) < fibers) this_fiber::yield();
  crowd.start();
  this_fiber::sleep_for(duration);
  crowd.stop();
  group.wait();
  return metrics_of(turns);
}

}  // namespace weft::bench
