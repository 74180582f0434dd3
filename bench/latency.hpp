// The parts of W11 and W13 in every C++ program of the comparison, weft's and the rivals'.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::bench {

// W11_idle: between two wakes. Every worker is asleep by then.
inline constexpr std::chrono::microseconds kWakePause{500};
// W11_busy: what the waker computes after each wake; and bursts of short fibers, with pauses.
inline constexpr std::chrono::microseconds kWakerComputes{200};
inline constexpr std::chrono::microseconds kBurstPause{20};
inline constexpr int kBurst = 10;
// W11_mixed: nine of ten fibers are short.
inline constexpr std::chrono::microseconds kShortWork{5};
inline constexpr std::chrono::microseconds kLongWork{1000};

// W13: what each fiber computes in a turn, and how long it sleeps where timers wake it.
inline constexpr std::chrono::microseconds kFairWork{20};
inline constexpr std::chrono::microseconds kFairSleep{1000};

// Keeps a processor busy. By the clock, so that a fiber is as long on any machine and in any
// language.
inline void compute_until(std::chrono::steady_clock::time_point end) {
  while (std::chrono::steady_clock::now() < end) {
  }
}
inline void compute(std::chrono::microseconds work) {
  compute_until(std::chrono::steady_clock::now() + work);
}

// One of ten, at random, but the same ones in every program and run (the output of splitmix64).
[[nodiscard]] inline std::chrono::microseconds mixed_work(std::uint64_t number) {
  std::uint64_t mixed = (number + 1) * 0x9E3779B97F4A7C15;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return (mixed ^ (mixed >> 31)) % 10 == 0 ? kLongWork : kShortWork;
}

// At which the mixed load's fibers take half of what the workers can give.
[[nodiscard]] inline std::chrono::nanoseconds mixed_interval(std::size_t workers) {
  constexpr double kLoad = 0.5;
  constexpr std::chrono::duration<double, std::nano> kMeanWork =
      (9 * kShortWork + kLongWork) / 10.0;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      kMeanWork / (kLoad * static_cast<double>(workers)));
}

// Adds the p50, p99 and p99.9 of `nanoseconds` to `metrics`, in microseconds. The p99 is the
// smallest value that 99 of 100 do not exceed.
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
