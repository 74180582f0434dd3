// Implements drain tasks: tasks of a parent that run the tasks of its sub-pools.
#include <utility>

#include "pool/core/pool_core.hpp"
#include "pool/nested/sub_pool.hpp"
#include "pool/nested/worker_registry.hpp"

namespace weft::pool {

using detail::PoolItem;
using detail::PoolJob;

namespace {

enum class Turn : std::uint8_t { first, later };

// The caller must hold the lock. Returns whether a drain task of the sub-pool may begin a task.
// After its first task, a drain task begins no further task while a parent has other work. Other
// drain tasks of the same sub-pool do not count as such work.
bool has_turn(PoolCore& sub_pool, Turn turn) noexcept {
  PoolCore* const parent = sub_pool.parent();
  if (parent == nullptr) return true;
  const PoolState& state = parent->shared_state();
  if (state.paused || state.workers.live() > state.slots.capacity()) return false;
  const bool others_wait = state.queue.size() > sub_pool.shared_state().workers.starting() ||
                           !state.waiters.blocked.empty() || !state.waiters.reacquiring.empty();
  if (turn == Turn::later && others_wait) return false;
  return has_turn(*parent, turn);
}

// A task of weight n needs n slots of each parent; its drain task already holds one of them. The
// drain task first gives this slot back, and then takes all n slots at once, as a task does after a
// wait. Thus no task holds a slot of a pool while it waits for slots of the same pool. Meanwhile
// the task counts as running in the sub-pool, because it has already left the queue there.
class SlotsOfParents {
 public:
  explicit SlotsOfParents(Registration& drain) noexcept
      : weight_(drain.weight()), first_(drain.outer()), end_(first_) {
    if (weight_ == 1) [[likely]]
      return;
    // A caller that runs a drain task in place of a worker may have no slots in the outer pools,
    // because it never had any or has given them back.
    const PoolCore* parent = drain.core().parent();
    for (; end_ != nullptr && &end_->core() == parent && end_->has_slot(); end_ = end_->outer()) {
      parent = parent->parent();
    }
    for_each_worker([](Registration& worker) {
      worker.begin_absence();
      worker.core().change([](PoolState& state) { state.release(1); });
    });
    for_each_worker([this](Registration& worker) { worker.core().reacquire_slots(weight_); });
    for_each_worker([this](Registration& worker) {
      worker.set_weight_of_drain(weight_);
      worker.end_absence();
    });
  }
  ~SlotsOfParents() {
    if (weight_ == 1) [[likely]]
      return;
    for_each_worker([this](Registration& worker) {
      worker.set_weight_of_drain(0);
      worker.core().change([this](PoolState& state) { state.slots.shrink(weight_); });
    });
  }
  SlotsOfParents(const SlotsOfParents&) = delete;
  SlotsOfParents& operator=(const SlotsOfParents&) = delete;

 private:
  // Visits the caller's registration in each outer pool in which the drain task occupies a slot.
  template <class Action>
  void for_each_worker(Action action) noexcept {
    for (Registration* worker = first_; worker != end_; worker = worker->outer()) action(*worker);
  }

  const std::size_t weight_;
  Registration* const first_;
  Registration* end_;
};

// Runs tasks of a sub-pool in a slot of the parent, on the fiber of the parent's worker.
class Drain {
 public:
  explicit Drain(PoolCore& core) noexcept : core_(core), state_(core.state()) {}

  // Returns the job of the task that ran last, or null if there is none. The caller must complete
  // the job.
  [[nodiscard]] PoolJob* run() noexcept {
    PoolItem item;
    Registration registration(core_, item);
    core_.lock();
    if (state_.workers.arrive()) {  // False if the sub-pool has retired this drain task.
      for (Turn turn = Turn::first; next(item, turn); turn = Turn::later) {
        run(item, registration);
        core_.lock();
        end(item);
      }
      core_.lock();
    }
    registration.give_slot_up();
    core_.match_up();
    return finished_;
  }
  [[nodiscard]] PoolJob::Outcome outcome() const noexcept { return self_.outcome; }

 private:
  void run(PoolItem& item, Registration& registration) noexcept {
    const SlotsOfParents slots(registration);
    core_.runner().run(item, self_);
  }

  // Returns false if no task is left, or if the drain task must not run another task now. If it
  // returns true, it wakes the waiters of the previous job, whose slot the next task now uses. If
  // it returns false, the parent wakes these waiters when it frees the drain task's slot.
  bool next(PoolItem& item, Turn turn) noexcept WEFT_RELEASES(core_.spin_lock()) {
    Effects& effects = self_.effects;
    state_.tell_counted(effects);
    state_.return_slots(effects);
    if (state_.paused) {
      // During a pause, no task starts. The pool only queues one blocked submitter's task.
      (void)state_.admit_one(nullptr, effects);
    } else if (!state_.waiters.blocked.empty()) {
      state_.workers.depart();  // admit_blocked() then counts this task as starting.
      state_.admit_blocked(effects);
      state_.workers.arrive_again();
    }
    const bool goes_on = state_.workers.live() <= state_.slots.capacity() && !state_.paused &&
                         has_turn(core_, turn) && state_.take(item, 0, effects);
    const bool calls_others = goes_on && state_.lacks_worker();
    if (goes_on) {
      self_.number = state_.left_queue();
      settle_finished();
    } else {
      state_.tell(effects);
      state_.retire_self(effects);
    }
    calls_others ? core_.match_up(effects) : core_.unlock(effects);
    return goes_on;
  }

  void settle_finished() noexcept {
    if (finished_ == nullptr) return;
    PoolJob& job = *std::exchange(finished_, nullptr);
    const PoolJob::Settled settled = job.settle(self_.outcome);
    self_.effects.wake_all(settled.waiters);
    if (settled.is_last || settled.is_unused) self_.effects.destroy(job);
  }
  // If the job's handle was dropped, releases the lock while it destroys the job's outcome.
  void end(PoolItem& item) noexcept WEFT_REQUIRES(core_.spin_lock()) {
    std::size_t weight = 1;
    finished_ = std::exchange(item.job, nullptr);
    if (finished_ != nullptr && finished_->is_dropped()) {
      core_.unlock();
      core_.runner().report_lost(*finished_, self_);
      finished_->drop_outcome();
      core_.lock();
    }
    if (finished_ != nullptr && finished_->attributes() != nullptr) {
      weight = finished_->attributes()->weight;
      if (core_.end_attributes(*finished_->attributes())) finished_ = nullptr;
    }
    core_.end_slots(self_, weight);
  }

  PoolCore& core_;
  PoolState& state_;
  PoolWorker self_;
  PoolJob* finished_ = nullptr;
};

}  // namespace

PoolCore* SubPool::enter() noexcept {
  const detail::SpinGuard guard(parent.spin_lock());
  if (has_ended) return nullptr;
  ++core.shared_state().users;
  return &core;
}

DrainTask::DrainTask(SubPool& sub_pool) noexcept
    : PoolJob(sub_pool.parent.root(), Kind::drain), sub_pool_(sub_pool) {
  sub_pool.keep();
}

DrainTask::~DrainTask() {
  if (finished_ != nullptr) finished_->release_reference();
  if (entered_ != nullptr) entered_->leave();
  sub_pool_.release();
}

bool DrainTask::invoke() noexcept {
  entered_ = sub_pool_.enter();
  if (entered_ == nullptr) return true;
  Drain drain(*entered_);
  finished_ = drain.run();
  outcome_ = drain.outcome();
  return true;
}

// The parent calls this function under the lock, when it frees the drain task's slot.
PoolJob::Settled DrainTask::settle(Outcome /*outcome*/) noexcept {
  Effects effects;
  if (finished_ != nullptr) {
    const Settled settled = finished_->settle(outcome_);
    if (settled.is_last) return {.is_last = true};  // ~DrainTask() destroys the job.
    effects.wake_all(settled.waiters);
    if (!settled.is_unused) finished_ = nullptr;
  }
  if (entered_ != nullptr) {
    PoolState& state = std::exchange(entered_, nullptr)->shared_state();
    --state.users;
    state.tell(effects);
  }
  return {.waiters = effects.take(), .is_unused = true};
}

void DrainTask::drain_accepted() noexcept {
  is_accepted_ = true;
  sub_pool_.core.shared_state().begin_drain();
}

void DrainTask::drop_callable() noexcept {
  PoolCore* const core = is_accepted_ ? sub_pool_.enter() : nullptr;
  if (core == nullptr) return;
  core->change([](PoolState& state) { state.workers.fail_start(); });
  core->leave();
}

}  // namespace weft::pool
