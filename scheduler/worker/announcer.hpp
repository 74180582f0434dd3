// A worker's calls to other workers for help.
#pragma once

#include "scheduler/desk.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/worker/pace.hpp"

namespace weft::scheduler {

// Notifies other workers if this worker's Pace decides that they should help. It announces
// queued fibers, and events that this worker may not handle in time. Owner: the worker.
class Announcer {
 public:
  Announcer(Desk& desk, Shared& shared, const Pace& pace) noexcept
      : pace_(pace), desk_(desk), shared_(shared) {}

  [[nodiscard]] Pace& pace() noexcept { return pace_; }
  [[nodiscard]] bool expects_long_runs() const noexcept {
    return pace_.expects_long_runs(pace_.last_look());
  }

  // Called after this worker has queued fibers. Does nothing if no fiber is running, because the
  // worker announces its queued fibers later, before it enters the next fiber. Always inlined,
  // because each spawn and wake calls it.
  [[gnu::always_inline]] void announce_work() noexcept {
    if (pace_.may_call() && shared_.idle().wants_wake_hint() && desk_.recorder.running() != nullptr)
        [[unlikely]]
      call_for_help();
  }
  // Wakes a sleeping worker to help with the fibers in this worker's queue. Called when these
  // fibers might otherwise wait for a long time.
  [[gnu::noinline]] void call_for_help() noexcept;
  // Called when this worker has a new earliest timer, or when the event source gets its first
  // descriptor. If this worker's fibers run for a long time, a sleeping worker handles the timer or
  // descriptor. Otherwise this worker handles it when it next checks for events, or before it
  // sleeps.
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
