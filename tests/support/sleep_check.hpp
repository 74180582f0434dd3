// Finds a worker that sleeps through what it should see to, by what is so and not by the clock.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace weft::test {

// Looks at the workers of all runtimes of the process, again and again. If all that do not compute
// stay asleep, nothing is on its way that could still wake one: then a sleeper must hold the watch,
// rise no later than the earliest timer, and sleep in the event source if that watches anything
// (L3 of scheduler/README.md); and where all sleep, nothing may be queued (L1). A machine that is
// slow, or stops a processor, changes none of this.
class SleepCheck {
 public:
  // How far apart looks are to be.
  static constexpr int kMilliseconds = 10;

  SleepCheck();
  ~SleepCheck();
  SleepCheck(const SleepCheck&) = delete;
  SleepCheck& operator=(const SleepCheck&) = delete;

  // What is wrong, in a sentence; empty if nothing is.
  [[nodiscard]] std::string look();

 private:
  struct Sight;

  std::unique_ptr<Sight> before_;
  std::size_t equal_ = 0;  // Looks at which all was as before.
};

}  // namespace weft::test
