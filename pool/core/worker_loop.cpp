// A worker's main loop: the worker joins the pool, runs tasks, idles, and leaves the pool.
#include "pool/core/worker_loop.hpp"

#include <utility>
#include <weft/detail/invariant.hpp>
#include <weft/detail/own_runtime.hpp>
#include <weft/detail/waist.hpp>

namespace weft::pool {

using detail::PoolItem;

namespace {

// The maximum number of idle workers that a worker wakes when it starts to look for tasks. Each
// woken worker wakes two more, so about log2(n) rounds of wakes suffice for n tasks.
constexpr int kCallsOnArrival = 2;

class WorkerLoop {
 public:
  WorkerLoop(PoolCore& core, PoolItem& item, WorkerObjects& objects) noexcept
      : core_(core), state_(core.state()), item_(item), self_(objects) {}

  void run() noexcept {
    self_.waker = detail::current();
    core_.lock();
    if (!state_.workers.arrive()) return core_.unlock();
    state_.workers.depart();  // next_task() calls arrive_again(), which requires this call.
    while (next_task()) {
      core_.runner().run(item_, self_);
      core_.lock();
      while (go_on()) {
        core_.unlock();
        core_.runner().run(item_, self_);
        core_.lock();
      }
      core_.end_task(self_, item_);
    }
  }

 private:
  // The fast path for the most common case: a plain task has ended, and the next task is plain too.
  // Returns false, and changes nothing, if the caller must call end_task() and next_task() instead.
  [[nodiscard]] bool go_on() noexcept WEFT_REQUIRES(core_.spin_lock()) {
    if (item_.job != nullptr || core_.runner().is_measuring() || !state_.needs_only_pop()) {
      return false;
    }
    state_.end_and_pop(item_, self_.outcome);
    self_.number = state_.left_queue();
    return true;
  }
  [[nodiscard]] bool next_task() noexcept WEFT_RELEASES(core_.spin_lock());
  // Called before work that must not happen under the lock. During that work, the worker counts as
  // starting, because it looks for a task afterwards.
  void step_out() noexcept WEFT_RELEASES(core_.spin_lock()) {
    state_.workers.depart();
    self_.starting = true;
    core_.unlock(self_.effects);
  }
  // Returns whether the worker must start the reaper before it goes idle.
  [[nodiscard]] bool reaper_is_due() const noexcept WEFT_REQUIRES(core_.spin_lock()) {
    if (state_.reaper.is_running()) return false;
    if (detail::runtime_is_ending()) return true;
    return core_.options().idle_timeout != kNever &&
           state_.workers.staying() > state_.kept_workers();
  }
  // Returns false if the worker has left the pool. Returns true if it has destroyed FiberLocal
  // values and is still live; the caller must then call come_back().
  [[nodiscard]] bool clear_or_leave() noexcept WEFT_RELEASES(core_.spin_lock());
  // Destroys the FiberLocal values of the worker's tasks. Returns false if the worker is no longer
  // live, because a destructor has waited for the pool.
  [[nodiscard]] bool clear() noexcept {
    self_.objects->destroy();
    return self_.objects->has_place();
  }
  // Called after a clear() that returned true; the worker then looks for a task.
  void come_back() noexcept WEFT_ACQUIRES(core_.spin_lock()) {
    core_.lock();
    state_.workers.end_clearing();
    self_.starting = false;
  }

  PoolCore& core_;
  PoolState& state_;
  PoolItem& item_;
  PoolWorker self_;
};

// Returns true if the worker has taken a task, which then counts as running. Returns false if the
// worker has been retired and no longer counts as live.
//
// Wakes the waiters of a finished job only after the job's slot has been freed or reused. A
// caller that has waited for a task can therefore submit again at once.
bool WorkerLoop::next_task() noexcept {
  Effects& effects = self_.effects;
  bool try_reaper = true;
  bool try_admitting = true;
  bool was_retired = false;  // Set if the idle worker was retired: it leaves if no task is queued.
  for (;;) {
    const bool arriving = self_.starting;
    if (arriving) state_.workers.arrive_again();
    self_.starting = false;
    state_.tell_counted(effects);
    const bool somebody_wants_slots = !state_.waiters.reacquiring.empty();
    if (somebody_wants_slots) state_.return_slots(effects);
    const bool surplus = state_.workers.has_surplus();
    const int calls = arriving || self_.freed_more || somebody_wants_slots ? kCallsOnArrival : 0;
    if (!surplus && !state_.paused && state_.take(item_, calls, effects)) {
      self_.number = state_.left_queue();
      // If fibers or memory are unavailable, the pool continues with its present workers.
      const std::size_t queued = state_.queue.startable();
      if (calls > 0 && state_.must_grow(queued)) (void)core_.grow(queued);
      state_.lacks_memory_for_blocked() ? core_.match_up(effects) : core_.unlock(effects);
      return true;
    }
    state_.tell(effects);
    if (surplus || ((state_.closed || was_retired) && state_.queue.startable() == 0)) {
      if (!clear_or_leave()) return false;
      come_back();
      continue;
    }
    if (!effects.empty()) {
      step_out();
    } else if (try_admitting && state_.must_admit_without_start()) {
      step_out();
      core_.lock();
      core_.match_up();       // Releases the lock.
      try_admitting = false;  // Without memory, another attempt would fail too.
    } else if (try_reaper && reaper_is_due()) {
      state_.workers.depart();
      self_.starting = true;
      // If the reaper cannot be started, the next worker that goes idle tries to start it.
      try_reaper = !core_.start_reaper();
      continue;
    } else {
      WEFT_INVARIANT(state_.queue.startable() == 0 || state_.paused || !state_.next_fits(),
                     "PoolState I2: a worker goes idle only if no task can start");
      WEFT_INVARIANT(!state_.can_return_slots(),
                     "PoolState I4: tasks wait for their slots only while they cannot have any");
      self_.starting = true;  // The worker will count as starting when a caller wakes it.
      state_.workers.go_idle(self_);
      detail::park(detail::unlock_after(core_.spin_lock()), detail::WaitReason::pool_idle);
      if (self_.retired) {
        if (!self_.has_objects() || !clear()) return false;
        self_.retired = false;
        was_retired = true;
        come_back();
        continue;
      }
    }
    core_.lock();
  }
}

bool WorkerLoop::clear_or_leave() noexcept {
  Effects& effects = self_.effects;
  const bool clears = self_.has_objects();
  clears ? state_.begin_clearing(effects) : state_.retire_self(effects);
  // This worker takes no task from the queue, so it frees no memory there for the task of a blocked
  // submitter. match_up() allocates this memory if necessary.
  const bool may_admit_more = !state_.waiters.blocked.empty() && state_.slots.has_room();
  may_admit_more ? core_.match_up(effects) : core_.unlock(effects);
  return clears && clear();
}

}  // namespace

void run_tasks(PoolCore& core, PoolItem& item, WorkerObjects& objects) noexcept {
  WorkerLoop(core, item, objects).run();
}

}  // namespace weft::pool
