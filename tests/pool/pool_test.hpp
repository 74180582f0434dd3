// Contains helpers that several tests of the pool use.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/pool_books.hpp"

namespace weft::test {

// Is a one-time event for any number of fibers and threads. Waiters poll it, because a test must
// not depend on the primitives that it tests.
class Flag {
 public:
  void set() { set_.store(true); }
  [[nodiscard]] bool is_set() const { return set_.load(); }
  void wait() const {
    while (!set_.load()) this_fiber::yield();
  }

 private:
  std::atomic<bool> set_{false};
};

// Waits until `condition` returns true; the test's deadline bounds the wait.
template <class Condition>
void wait_until_true(Condition condition) {
  while (!condition()) this_fiber::yield();
}

// Records the tasks that ran, in order.
class Record {
 public:
  void add(int value) {
    const std::lock_guard guard(mutex_);
    values_.push_back(value);
  }
  [[nodiscard]] std::vector<int> values() {
    const std::lock_guard guard(mutex_);
    return values_;
  }

 private:
  Mutex mutex_;
  std::vector<int> values_;
};

// Makes a pool whose first worker is busy. If the pool has only this worker, submitted tasks wait.
struct HeldPool {
  explicit HeldPool(PoolOptions options) : pool(std::move(options)) {
    if (!pool.submit([this] { hold.wait(); })) throw std::logic_error("the pool is full");
    wait_until_true([this] { return pool.stats().busy == 1; });
  }
  void run_all() {
    hold.set();
    pool.wait_idle();
  }
  Flag hold;
  FiberPool pool;
};

// Lets callers submit light tasks to a pool one after the other, while this object lives.
class LightTasks {
 public:
  explicit LightTasks(FiberPool& pool) {
    for (int i = 0; i < 4; ++i) {
      streams_.push_back(spawn([this, &pool] {
        while (!over_.load()) CHECK(pool.submit([] { this_fiber::yield(); }));
      }));
    }
  }
  ~LightTasks() {
    over_ = true;
    for (auto& stream : streams_) stream.join();
  }
  LightTasks(const LightTasks&) = delete;
  LightTasks& operator=(const LightTasks&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<JoinHandle<void>> streams_;
};

// Returns whether a pool refuses these options with a message that names `option`.
[[nodiscard]] inline bool refused(PoolOptions options, const std::string& option) {
  try {
    const FiberPool pool(std::move(options));
  } catch (const std::invalid_argument& error) {
    return std::string(error.what()).find(option) != std::string::npos;
  }
  return false;
}

// Returns the n-th Fibonacci number; every call is a task that waits for another.
inline int fibonacci(FiberPool& pool, Concurrency& gauge, int n) {
  {
    const Concurrency::Stay stay(gauge);
    this_fiber::yield();
  }
  if (n < 2) return n;
  auto first = pool.async([&pool, &gauge, n] { return fibonacci(pool, gauge, n - 1); });
  const int second = pool.run([&] { return fibonacci(pool, gauge, n - 2); });
  return first.get() + second;
}

}  // namespace weft::test
