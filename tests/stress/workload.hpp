// Contains tools for all stress tests: their duration, and counts of progress.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <weft/runtime.hpp>

#include "tests/support/fiber_test.hpp"

namespace weft::test {

// Returns the time for each test: WEFT_STRESS_SECONDS, or 3 s if it is not set.
[[nodiscard]] inline std::chrono::milliseconds stress_time() {
  const char* text = std::getenv("WEFT_STRESS_SECONDS");
  const double seconds = text != nullptr ? std::strtod(text, nullptr) : 3;
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Counts units of work. If the count stays the same for a long time, aborts with a dump, so that a
// hanging stress test ends before its deadline.
class Progress {
 public:
  explicit Progress(Runtime& runtime) : runtime_(runtime), watch_([this] { keep_watch(); }) {}
  ~Progress() {
    ended_.store(true);
    watch_.join();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void made() noexcept { units_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t units() const noexcept { return units_.load(); }
  // Returns whether the time for starting new work is over.
  [[nodiscard]] bool time_is_up() const noexcept {
    return std::chrono::steady_clock::now() >= end_;
  }

 private:
  static inline const std::chrono::seconds kStandstill{5 * kSlowdown};

  void keep_watch() {
    // Counts naps and not time: a machine that stops for a while misses only one nap.
    constexpr std::chrono::milliseconds kNap{20};
    std::uint64_t seen = 0;
    std::int64_t naps = 0;
    while (!ended_.load()) {
      std::this_thread::sleep_for(kNap);
      if (units() != seen) {
        seen = units();
        naps = 0;
      } else if (++naps > kStandstill / kNap) {
        std::cerr << "no progress for " << kStandstill.count() << " s" << std::endl;
        runtime_.dump(std::cerr);
        std::abort();
      }
    }
  }

  Runtime& runtime_;
  const std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + stress_time();
  std::atomic<std::uint64_t> units_{0};
  std::atomic<bool> ended_{false};
  std::thread watch_;
};

}  // namespace weft::test
