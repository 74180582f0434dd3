// What a run of the model has to say.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "bench/model/units.hpp"

namespace weft::bench::model {

// Counts of times, in classes a sixteenth of an octave wide.
class Spread {
 public:
  void add(Time time) {
    ++counts_[class_of(time)];
    ++total_;
  }
  // The upper end of the class in which the part `part` of all times ends.
  [[nodiscard]] Time at(double part) const {
    const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (unsigned i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted) return upper_end(i);
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  static constexpr unsigned kSteps = 16;
  static unsigned class_of(Time time) {
    const auto value = static_cast<std::uint64_t>(time < 0 ? 0 : time) + kSteps;
    const auto octave = static_cast<unsigned>(std::bit_width(value)) - 5;
    return octave * kSteps + static_cast<unsigned>(value >> octave) - kSteps;
  }
  static Time upper_end(unsigned index) {
    const unsigned octave = index / kSteps;
    return static_cast<Time>((std::uint64_t{index % kSteps + kSteps + 1} << octave) - kSteps);
  }

  std::array<std::uint64_t, 60 * kSteps> counts_{};
  std::uint64_t total_ = 0;
};

// What a worker's time goes into. The rest of it the worker sleeps.
enum class Use : std::uint8_t {
  work,    // What fibers compute.
  fibers,  // Spawning, switching, waking: what a single worker would spend, too.
  search,  // Looking for work.
  kernel,  // Going to sleep, waking others, polling.
};

struct Measurements {
  std::uint64_t spawned = 0;
  std::uint64_t runs = 0;  // Times that a fiber was run.
  std::uint64_t steals = 0;
  std::uint64_t stolen = 0;  // Fibers.
  std::uint64_t looks = 0;   // At a victim.
  std::uint64_t wakes = 0;   // Workers woken for new work.
  std::uint64_t sleeps = 0;
  std::uint64_t polls = 0;
  std::array<Time, 4> used{};
  Spread start_delay;  // From runnable to running.
  Spread response;     // Of requests, where a load has any: from arrival to answer.

  void spend(Use use, Time time) { used[static_cast<unsigned>(use)] += time; }
};

}  // namespace weft::bench::model
