// Distinguishes timed waits that the library ends late from waits that a stopped machine delays.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace weft::test {

// A plain thread that repeatedly sleeps for a moment, and records by how much the system wakes it
// late. The system may wake a worker equally late.
class Lateness {
 public:
  using Clock = std::chrono::steady_clock;
  // If a wait ends this late while a worker is idle, the library has missed the deadline of the
  // wait and noticed it by chance.
  static constexpr std::chrono::milliseconds kBound{50};

  Lateness() : thread_([this] { keep_watch(); }) {}
  ~Lateness() {
    ended_.store(true);
    thread_.join();
  }
  Lateness(const Lateness&) = delete;
  Lateness& operator=(const Lateness&) = delete;

  // Runs a wait of `length`. Returns false if it ended too late and the machine did not cause that.
  template <class Wait>
  [[nodiscard]] bool is_punctual(Clock::duration length, Wait wait) {
    longest_stall_.store(0);
    const Clock::time_point due = Clock::now() + length;
    wait();
    const auto late = Clock::now() - due;
    return late < kBound || std::chrono::nanoseconds(longest_stall_.load()) > kBound / 2;
  }

 private:
  static constexpr std::chrono::milliseconds kNap{2};

  void keep_watch() {
    while (!ended_.load()) {
      const Clock::time_point due = Clock::now() + kNap;
      std::this_thread::sleep_until(due);
      const std::chrono::nanoseconds stall = Clock::now() - due;
      if (stall.count() > longest_stall_.load()) longest_stall_.store(stall.count());
    }
  }

  std::atomic<bool> ended_{false};
  std::atomic<std::chrono::nanoseconds::rep> longest_stall_{0};
  std::thread thread_;
};

}  // namespace weft::test
