// Finds a sleeping worker that misses an event that it should handle. It examines states, not
// times.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace weft::test {

// Repeatedly examines the workers of all runtimes of the process. If all workers that do not
// compute stay asleep, no pending action can wake one. Then a sleeper must hold the watch, wake no
// later than the earliest timer, and sleep in the event source if that watches anything (L3 of
// scheduler/README.md). If all workers sleep, no fiber may be queued (L1). A slow machine or a
// stopped processor does not affect these checks.
class SleepCheck {
 public:
  // The time between two checks, in milliseconds.
  static constexpr int kMilliseconds = 10;

  SleepCheck();
  ~SleepCheck();
  SleepCheck(const SleepCheck&) = delete;
  SleepCheck& operator=(const SleepCheck&) = delete;

  // Returns a sentence that describes the fault, or an empty text.
  [[nodiscard]] std::string look();

 private:
  struct Sight;

  std::unique_ptr<Sight> before_;
  std::size_t equal_ = 0;  // Consecutive samples without a change.
};

}  // namespace weft::test
