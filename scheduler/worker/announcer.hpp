// A worker's calls to other workers for help.
#pragma once

#include "scheduler/desk.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/worker/pace.hpp"

namespace weft::scheduler {

// Notifies other workers if this worker's Pace decides that they should help. It announces fibers
// that wait here, and events that this worker may not reach in time. Owner: the worker.
class Announcer {
 public:
  Announcer(Desk& desk, Shared& shared, const Pace& pace) noexcept
      : pace_(pace), desk_(desk), shared_(shared) {}

  [[nodiscard]] Pace& pace() noexcept { return pace_; }
  [[nodiscard]] bool expects_long_runs() const noexcept {
    return pace_.expects_long_runs(pace_.last_look());
  }

  // Called after this worker has queued fibers. If no fiber is running, the worker announces the
  // queued fibers only before it enters a fiber, because that fiber is usually among them. Always
  // inlined, because each spawn and wake calls it.
  [[gnu::always_inline]] void announce_work() noexcept {
    if (pace_.may_call() && shared_.idle().wants_wake_hint() && desk_.recorder.running() != nullptr)
        [[unlikely]]
      call_for_help();
  }
  // Called when fibers must wait for the end of the current run, or of the run that is about to
  // begin.
  [[gnu::noinline]] void call_for_help() noexcept;
  // Called when a timer has become this worker's earliest timer, or the event source has something
  // new to watch. If long runs are expected, a sleeping worker handles the event. Otherwise this
  // worker handles it at its next look, or before it sleeps.
  void announce_event() noexcept;
  // Ensures that a sleeping worker runs this worker's timers if this worker does not reach them in
  // time.
  void mind_watch_while_awake() noexcept;

 private:
  Pace pace_;
  Desk& desk_;
  Shared& shared_;
};

}  // namespace weft::scheduler
