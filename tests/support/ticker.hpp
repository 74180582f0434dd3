// Measures how late workers handle timers.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace weft::test {

// Runs a fiber that ticks while this object lives. It is for tests that leave a worker idle, so
// that only a busy machine causes gaps between ticks. A gap of many seconds is a failure: no worker
// handled the timer until the others had finished. The test reports the longest gap with its seed.
// Use it in a fiber.
class Ticker {
 public:
  explicit Ticker(std::chrono::milliseconds period = std::chrono::milliseconds(1)) {
    group_.go([this, period] {
      for (auto last = Clock::now(); !stop_;) {
        this_fiber::sleep_for(period);
        const auto now = Clock::now();
        if (now - last > longest_.load()) longest_ = now - last;
        last = now;
        ++ticks_;
      }
    });
  }
  ~Ticker() {
    stop_ = true;
    group_.wait();
    if (longest_.load() > kBound) {
      FAIL_CHECK("the longest gap between two ticks: ",
                 std::chrono::duration<double>(longest_.load()).count(),
                 " s; WEFT_TEST_SEED=", test_seed());
    }
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  [[nodiscard]] std::uint64_t ticks() const noexcept { return ticks_; }

 private:
  using Clock = std::chrono::steady_clock;
  static inline const std::chrono::nanoseconds kBound = std::chrono::seconds(10 * kSlowdown);

  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> ticks_{0};
  std::atomic<std::chrono::nanoseconds> longest_{std::chrono::nanoseconds(0)};
  WaitGroup group_;
};

}  // namespace weft::test
