// The life of a worker: it arrives, runs tasks, idles, and leaves.
#include <utility>

#include "pool/core/pool_core.hpp"

namespace weft::pool {

using detail::PoolItem;

namespace {

// An arriving worker that sees more tasks than starting workers calls so many. Two make the calls
// a tree: n blocking tasks have n workers after log2(n) passes through the run queue.
constexpr int kCallsOnArrival = 2;

}  // namespace

void PoolCore::work(PoolItem& item) noexcept {
  Worker self;
  self.waker = detail::current();
  lock_.lock();
  while (next_task(self, item)) {
    execute(item, self);
    lock_.lock();
    while (go_on(self, item)) {
      lock_.unlock();
      execute(item, self);
      lock_.lock();
    }
    end_task(self, item);
  }
}

// The way of most tasks: a plain one has ended, and a plain one is next. False,
// and nothing has happened, if more is to be done: by end_task() and next_task().
inline bool PoolCore::go_on(Worker& self, PoolItem& item) noexcept {
  if (item.job != nullptr || timings_ != nullptr || !state_.needs_only_pop()) return false;
  state_.end_and_pop(item, self.outcome);
  self.number = state_.left_queue();
  return true;
}

// True with a task to run, whose slot is counted as running; false when the worker has been
// retired, and its slot is no longer counted as live.
//
// The waiters of a finished job are woken once its slot has been used otherwise or is free: so
// who waits for a task can count on its slot.
bool PoolCore::next_task(Worker& self, PoolItem& item) noexcept {
  Effects& effects = self.effects;
  bool try_reaper = true;
  bool try_admitting = true;
  for (;;) {
    const bool arriving = self.starting;
    if (arriving && !state_.workers.arrive()) {
      lock_.unlock();
      return false;
    }
    self.starting = false;
    state_.tell_counted(effects);
    const bool somebody_wants_slots = !state_.waiters.reacquiring.empty();
    if (somebody_wants_slots) state_.return_slots(effects);
    const bool surplus = state_.workers.has_surplus();
    const int calls = arriving || self.freed_more || somebody_wants_slots ? kCallsOnArrival : 0;
    if (!surplus && !state_.paused && state_.take(item, calls, effects)) {
      self.number = state_.left_queue();
      // Without fibers or memory the pool goes on with the workers it has.
      const std::size_t queued = state_.queue.startable();
      if (calls > 0 && state_.must_grow(queued)) (void)grow(queued);
      state_.lacks_memory_for_blocked() ? match_up(effects) : unlock(effects);
      return true;
    }
    state_.tell(effects);
    if (surplus || (state_.closed && state_.queue.startable() == 0)) {
      // It makes room without a pop, so the queue may have to grow for a caller that is let in.
      state_.retire_self(effects);
      const bool may_admit_more = !state_.waiters.blocked.empty() && state_.slots.has_room();
      may_admit_more ? match_up(effects) : unlock(effects);
      return false;
    }
    if (!effects.empty()) {
      step_out(self);
    } else if (try_admitting && state_.must_admit_without_start()) {
      step_out(self);
      lock_.lock();
      match_up();             // Releases it.
      try_admitting = false;  // If it was of no use, there is no memory.
    } else if (try_reaper && reaper_is_due()) {
      state_.workers.depart();
      self.starting = true;
      // Without fibers the next worker that goes idle tries again.
      try_reaper = !start_background(state_.reaper, bodies_.reaper);
      continue;
    } else {
      self.starting = true;  // By the time it comes back.
      state_.workers.go_idle(self);
      detail::park(detail::unlock_after(lock_), detail::WaitReason::pool_idle);
      if (self.retired) return false;
    }
    lock_.lock();
  }
}

// For what must not be done under the lock. The worker is counted as starting, since it will look
// for a task again.
void PoolCore::step_out(Worker& self) noexcept {
  state_.workers.depart();
  self.starting = true;
  unlock(self.effects);
}

// Whether a worker that goes idle must start the reaper first.
bool PoolCore::reaper_is_due() const noexcept {
  if (state_.reaper.is_running()) return false;
  if (detail::runtime_is_ending()) return true;
  return options_->idle_timeout != kNever && state_.workers.live() > state_.kept_workers();
}

}  // namespace weft::pool
