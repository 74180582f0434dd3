// Measures a worker's pace, which determines when it performs looks and wakes other workers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "scheduler/tuning.hpp"

namespace weft::scheduler {

// Decides when a worker checks for other work (a look), and when it wakes another worker to help.
// Also remembers long runs of the worker's fibers. All times are in nanoseconds. The caller passes
// the time, because the worker has already read the clock. Owner: the worker.
//
// A call for help wakes another worker, and costs each of the two about 10 us. It is useless if the
// caller has run the waiting fibers before the called worker arrives. After a call that may be
// useless, the worker therefore makes no further call for some time. This time doubles with each
// such call until the worker's measurements show that fibers do wait.
class Pace {
 public:
  // Without a monitor, the worker always expects long runs, because no other thread would notice a
  // long run. In a simulation, `most_decisions` is 1, so a look follows every decision.
  Pace(std::int64_t now, bool is_monitored,
       std::uint32_t most_decisions = tuning::kMostDecisions) noexcept
      : most_decisions_(most_decisions),
        last_look_(now),
        expects_long_runs_until_(is_monitored ? 0 : kForever) {}

  // Must be called after the worker has slept until `now`. Idle time does not count toward the pace
  // of the fibers that follow.
  void resume(std::int64_t now, std::uint64_t switches) noexcept {
    allotted_ = most_decisions_;
    last_look_ = now;
    switches_ = switches;
    let_call(now);
  }

  // The worker's progress since it last checked for other work (its last look).
  struct Progress {
    std::int64_t elapsed = 0;
    std::int64_t runs = 0;
    // Returns whether the runs have taken at least `each` nanoseconds on average.
    [[nodiscard]] bool average(std::int64_t each) const noexcept {
      return elapsed >= each * (runs + 1);
    }
    // Returns whether `queued` fibers, at this pace, take longer than `patience`.
    [[nodiscard]] bool exceeds(std::int64_t patience, std::int64_t queued) const noexcept {
      if (queued == 0) return false;
      return runs == 0 ? elapsed >= patience : queued * elapsed >= patience * runs;
    }
  };
  Progress look(std::int64_t now, std::uint64_t switches) noexcept {
    const Progress progress{
        std::max<std::int64_t>(now - std::exchange(last_look_, now), 1),
        static_cast<std::int64_t>(switches - std::exchange(switches_, switches))};
    let_call(now);
    last_ = progress;
    return progress;
  }

  // Sets the number of decisions until the next look, such that the worker makes them within
  // `period` at the pace of `progress`.
  [[nodiscard]] std::uint32_t allot(const Progress& progress, std::int64_t period) noexcept {
    if (progress.elapsed * most_decisions_ <= period * progress.runs || most_decisions_ == 1) {
      allotted_ = most_decisions_;  // In this common case, no division is needed.
    } else {
      const std::int64_t fitting = period * progress.runs / progress.elapsed;
      allotted_ = static_cast<std::uint32_t>(std::max<std::int64_t>(fitting, 1));
    }
    return allotted_;
  }
  [[nodiscard]] std::uint32_t allotted() const noexcept { return allotted_; }
  [[nodiscard]] std::int64_t last_look() const noexcept { return last_look_; }

  // Returns whether, at the measured pace, `queued` fibers have to wait for longer than `patience`.
  // If runs are short, two successive looks must find such a wait: one look may only have measured
  // that the thread was preempted.
  [[nodiscard]] bool finds_waiting(std::int64_t patience, std::size_t queued) noexcept {
    const bool waits = last_.exceeds(patience, static_cast<std::int64_t>(queued));
    const bool waited = std::exchange(waits_, waits);
    return waits && (waited || expects_long_runs(last_look_));
  }

  // Must be called after a fiber has run for a long time or has been blocked. The worker then
  // expects more long runs for some time.
  void note_long_run(std::int64_t now) noexcept {
    expects_long_runs_until_ = std::max(expects_long_runs_until_, now + tuning::kLongRunMemory);
    note_waiting();
  }
  [[nodiscard]] bool expects_long_runs(std::int64_t now) const noexcept {
    return now < expects_long_runs_until_;
  }

  // Returns whether, if `queued` fibers are ready at the same time, some of them would wait too
  // long.
  [[nodiscard]] bool expects_wait(std::size_t queued) const noexcept {
    return last_.exceeds(tuning::kPatience, static_cast<std::int64_t>(queued)) ||
           (queued != 0 && expects_long_runs(last_look_));
  }

  // Returns whether the worker is allowed to wake another one to help with waiting fibers.
  [[nodiscard]] bool may_call() const noexcept { return may_call_; }
  void note_call(std::int64_t now) noexcept {
    // A call is certainly useful if a single run takes longer than a fiber should have to wait.
    may_call_ = last_.exceeds(tuning::kPatience, 1) || expects_long_runs(now);
    if (may_call_) return;
    next_call_ = now + pause_;
    pause_ = std::min(pause_ * 2, tuning::kLongestCallPause);
  }
  // Must be called if the scheduler has no other worker. Prevents calls for help until the next
  // look.
  void note_alone() noexcept { may_call_ = false; }
  // Must be called after the worker has measured that fibers wait for a long time.
  void note_waiting() noexcept {
    pause_ = tuning::kShortestCallPause;
    may_call_ = true;
  }

 private:
  static constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

  void let_call(std::int64_t now) noexcept {
    if (now >= next_call_) may_call_ = true;
  }

  bool may_call_ = true;
  bool waits_ = false;
  const std::uint32_t most_decisions_;
  std::uint32_t allotted_ = most_decisions_;
  std::int64_t last_look_;
  Progress last_{};  // The progress before the last look.
  std::uint64_t switches_ = 0;
  std::int64_t expects_long_runs_until_;
  std::int64_t next_call_ = 0;
  std::int64_t pause_ = tuning::kShortestCallPause;
};

}  // namespace weft::scheduler
