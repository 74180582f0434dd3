// Contains the parts of W11 and W13 that weft's and the rivals' C++ programs share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::bench {

// W11_idle: the pause between two wakes. Every worker is asleep when the pause ends.
inline constexpr std::chrono::microseconds kWakePause{500};
// W11_busy: the waker computes this long after each wake; bursts of short fibers also run.
inline constexpr std::chrono::microseconds kWakerComputes{200};
inline constexpr std::chrono::microseconds kBurstPause{20};
inline constexpr int kBurst = 10;
// W11_mixed: nine of ten fibers are short.
inline constexpr std::chrono::microseconds kShortWork{5};
inline constexpr std::chrono::microseconds kLongWork{1000};

// W13: how long each fiber computes in a turn, and how long it sleeps if a timer wakes it.
inline constexpr std::chrono::microseconds kFairWork{20};
inline constexpr std::chrono::microseconds kFairSleep{1000};

// Keeps a processor busy until `end`, so that a fiber takes equally long on any machine.
inline void compute_until(std::chrono::steady_clock::time_point end) {
  while (std::chrono::steady_clock::now() < end) {
  }
}
inline void compute(std::chrono::microseconds work) {
  compute_until(std::chrono::steady_clock::now() + work);
}

// Returns the longer time for one number in ten, at random. The choice (by splitmix64) is the same
// in every program and run.
[[nodiscard]] inline std::chrono::microseconds mixed_work(std::uint64_t number) {
  std::uint64_t mixed = (number + 1) * 0x9E3779B97F4A7C15;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return (mixed ^ (mixed >> 31)) % 10 == 0 ? kLongWork : kShortWork;
}

// Returns the interval at which the mixed load's fibers take half of the workers' time.
[[nodiscard]] inline std::chrono::nanoseconds mixed_interval(std::size_t workers) {
  constexpr double kLoad = 0.5;
  constexpr std::chrono::duration<double, std::nano> kMeanWork =
      (9 * kShortWork + kLongWork) / 10.0;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      kMeanWork / (kLoad * static_cast<double>(workers)));
}

// Adds the p50, p99 and p99.9 of `nanoseconds` to `metrics`, in microseconds. The p99 is the
// smallest value that 99 % of the values do not exceed.
template <class Metrics>
void add_quantiles(Metrics& metrics, const char* prefix, std::vector<double> nanoseconds) {
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const auto at = [&nanoseconds](double part) {
    const double rank = std::ceil(part * static_cast<double>(nanoseconds.size()));
    return nanoseconds[std::max<std::size_t>(static_cast<std::size_t>(rank), 1) - 1] / 1e3;
  };
  for (const auto& [name, part] :
       {std::pair{"p50_us", 0.5}, {"p99_us", 0.99}, {"p999_us", 0.999}}) {
    metrics.insert(metrics.end(), {std::string(prefix) + name, at(part)});
  }
}

}  // namespace weft::bench
