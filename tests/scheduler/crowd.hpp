// Runs fibers that take turns, and measures how long they wait for turns.
#pragma once

#include <doctest/doctest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

namespace weft::test {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// The shortest run: 61 runs take longer than the pause between two polls of descriptors.
inline constexpr auto kRun = std::chrono::microseconds(1);
// The observation of a crowd ends when each of its fibers has had this many turns.
inline constexpr std::size_t kTurns = 8;
// If a turn comes too late, the crowd ends after this many times the runs that a fiber may wait
// for.
inline constexpr std::size_t kPatience = 64;
// How far a worker may be ahead of others, in runs. Waits count in runs of the worker that ends
// them, so each move to another worker may add twice this lead. It is far below the permitted wait.
inline constexpr std::size_t kLead = 8;
inline constexpr Time kUnknown = Time::max();

inline constexpr std::size_t bound(std::size_t runnable) { return 2 * runnable + 64; }

// Counts the runs on one worker. A fiber that continues at once, without a wait, is still in the
// same run.
struct alignas(64) Runs {
  std::atomic<pthread_t> thread{};
  std::atomic<std::size_t> count{0};
  // Only the worker uses it.
  std::vector<Time> begun;
  std::uint64_t latest = 0;  // The fiber of the latest run.

  [[nodiscard]] std::size_t since(Time moment) const {
    return static_cast<std::size_t>(begun.end() - std::ranges::lower_bound(begun, moment));
  }
  void add(Time now, std::uint64_t fiber) {
    if (std::exchange(latest, fiber) == fiber) return;
    begun.push_back(now);
    count.store(begun.size());
  }
};

// Runs fibers until each has had its turns. A fixed number of them is runnable at any time.
class Crowd {
 public:
  Crowd(unsigned workers, std::size_t runnable)
      : runs_(workers), patience_(kPatience * bound(runnable)) {}

  // Adds a fiber; plain threads and fibers may call it. `wait` yields or parks until the fiber has
  // another turn, and returns the time at which the fiber became ready, or kUnknown.
  template <class Wait>
  void add(Wait wait) {
    ++fibers_;
    raise_to(most_live_, ++live_);
    group_.go([this, wait]() mutable {
      std::size_t turns = 0;
      note_wait(complete_.load());
      ++begun_;
      do {
        note_wait(wait());
        run();
        if (is_complete() && ++turns == kTurns) one_has_had_enough();
      } while (!is_over());
      raise_to(most_turns_, turns);
    });
  }
  void add_yielding(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      add([] {
        const Time ready = Clock::now();
        this_fiber::yield();
        return ready;
      });
    }
  }

  // Adds a fiber for a single run.
  void add_run() {
    raise_to(most_live_, ++live_);
    group_.go([this] {
      run();
      --live_;
    });
  }

  // Call it after the last fiber has been added. From then on, turns count, and fibers that have
  // not begun count as waiting.
  void complete() {
    complete_.store(Clock::now());
    one_has_had_enough();
  }
  [[nodiscard]] bool all_workers_run() const {
    return std::ranges::all_of(runs_, [](const Runs& runs) { return runs.count.load() != 0; });
  }
  [[nodiscard]] bool is_complete() const { return complete_.load() != kUnknown; }
  [[nodiscard]] bool all_have_begun() const {
    return is_complete() && begun_.load() == fibers_.load();
  }
  [[nodiscard]] bool is_over() const { return over_.load(); }
  // Blocks the calling thread until the observation is over.
  void await_enough() const { over_.wait(false); }
  // Parks the calling thread until all fibers have ended.
  void await_end() { group_.wait(); }
  [[nodiscard]] bool is_fair() const { return longest_wait_.load() <= bound(most_live_.load()); }
  [[nodiscard]] std::size_t longest_wait() const { return longest_wait_.load(); }
  [[nodiscard]] std::size_t most_turns() const { return most_turns_.load(); }

 private:
  static void raise_to(std::atomic<std::size_t>& highest, std::size_t value) {
    std::size_t before = highest.load();
    while (before < value && !highest.compare_exchange_weak(before, value)) {
    }
  }

  void note_wait(Time ready) { raise_to(longest_wait_, runs_here().since(ready)); }
  void run() {
    Runs& here = runs_here();
    here.add(Clock::now(), this_fiber::id());
    keep_in_step(here);
    const Time enough = Clock::now() + kRun;
    while (Clock::now() < enough) {
    }
    if (here.since(complete_.load()) == patience_) end();
  }
  void one_has_had_enough() {
    // One more than the number of fibers: the observation cannot end while fibers are being added.
    if (enough_.fetch_add(1) == fibers_.load()) end();
  }
  void end() {
    over_.store(true);
    over_.notify_all();
  }
  // All workers always have enough work, so late workers catch up.
  void keep_in_step(const Runs& here) const {
    const auto is_behind = [&](const Runs& other) {
      return other.count.load() + kLead < here.begun.size();
    };
    while (!is_over() && std::ranges::any_of(runs_, is_behind)) std::this_thread::yield();
  }
  // Never inlined: the fiber may have been on another thread before.
  [[gnu::noinline]] Runs& runs_here() {
    const pthread_t self = ::pthread_self();
    for (Runs& runs : runs_) {
      pthread_t nobody{};
      if (runs.thread.load() == self || runs.thread.compare_exchange_strong(nobody, self)) {
        return runs;
      }
    }
    FAIL_CHECK("more workers than were asked for");
    return runs_.front();
  }

  std::vector<Runs> runs_;
  const std::size_t patience_;
  std::atomic<Time> complete_{kUnknown};
  std::atomic<std::size_t> fibers_{0};
  std::atomic<std::size_t> begun_{0};
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> most_live_{0};
  std::atomic<std::size_t> enough_{0};
  std::atomic<std::size_t> longest_wait_{0};
  std::atomic<std::size_t> most_turns_{0};
  std::atomic<bool> over_{false};
  WaitGroup group_;
};

// Records when a fiber became ready that one other fiber or thread wakes. It records the time after
// the wake, so the time is never too early.
class Woken {
 public:
  // `wake` makes the fiber ready.
  template <class Wake>
  void by(Wake wake) {
    since_.store(kUnknown);
    wake();
    note();
  }
  void forget() { since_.store(kUnknown); }
  void note() { since_.store(Clock::now()); }
  [[nodiscard]] Time since() const { return since_.load(); }

 private:
  std::atomic<Time> since_{kUnknown};
};

}  // namespace weft::test
