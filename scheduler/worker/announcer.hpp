// A worker's calls to the other workers.
#pragma once

#include "scheduler/desk.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/worker/pace.hpp"

namespace weft::scheduler {

// Announces fibers that wait at a worker, and events that it may not reach in time, when its Pace
// tells that the others should help. Owner: the worker.
class Announcer {
 public:
  Announcer(Desk& desk, Shared& shared, const Pace& pace) noexcept
      : pace_(pace), desk_(desk), shared_(shared) {}

  [[nodiscard]] Pace& pace() noexcept { return pace_; }
  [[nodiscard]] bool expects_long_runs() const noexcept {
    return pace_.expects_long_runs(pace_.last_look());
  }

  // Fibers have been queued here. Fibers that the idle stack queues are announced before the worker
  // enters one, because usually that one is among them. Always inlined, because each spawn and wake
  // uses it.
  [[gnu::always_inline]] void announce_work() noexcept {
    if (pace_.may_call() && shared_.idle().wants_wake_hint() && desk_.recorder.running() != nullptr)
        [[unlikely]]
      call_for_help();
  }
  // Fibers wait here behind a fiber that runs, or is about to.
  [[gnu::noinline]] void call_for_help() noexcept;
  // A timer has become the earliest here, or the event source has been given something to watch.
  // This worker handles it at its next look, or before it sleeps; where runs are long, a sleeper
  // does.
  void announce_event() noexcept;
  // A sleeper must run the timers here if this worker does not reach them in time.
  void mind_watch_while_awake() noexcept;

 private:
  Pace pace_;
  Desk& desk_;
  Shared& shared_;
};

}  // namespace weft::scheduler
