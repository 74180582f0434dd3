#include <weft/detail/alarm.hpp>

#include <memory>
#include <utility>
#include <weft/detail/invariant.hpp>
#include <weft/detail/waist.hpp>

#include "scheduler/waist/destination.hpp"
#include "scheduler/waist/timed_wait.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::detail {

namespace {

// Invariants
//   I1  claim_ decides whether the clock or a cancellation wakes the fiber; the fiber runs the task
//       only if the clock has won.
//   I2  wait_ never begins after a cancellation, because cancel() sets cancelled_ and begin_wait()
//       checks it, both under lock_.
//   I3  references_ counts the handle, the fiber, and the helper fiber that sets the timer for a
//       plain thread.
// Order
//   [alarm]  release() decrements references_ (acq_rel) -> the last release() decrements it
//            (acq_rel): the object is deleted after all other owners' uses.
class TimedTask final : public Alarm {
 public:
  TimedTask(Deadline deadline, Task&& task) noexcept
      : wait_(deadline, &claim_), task_(std::move(task)) {}

  // The fiber and its timer must belong to the same runtime, so both use the same Destination.
  void make_fiber(const scheduler::Destination& runtime) {
    wait_.set_waker(
        Waker::of_fiber(&runtime->spawn_parked(Task([this] { run(); }), WaitReason::timer)));
  }
  void start_clock(const scheduler::Destination& runtime) {
    if (scheduler::current_worker() != nullptr) {
      begin_wait();
      return;
    }
    // Timer wheels belong to workers, so a plain thread spawns a fiber that sets the timer.
    retain();
    try {
      runtime->spawn(Task([this] {
                       begin_wait();
                       release();
                     }),
                     {}, nullptr);
    } catch (...) {
      release();
      throw;
    }
  }

  bool cancel() noexcept override {
    if (!claim_.try_claim(Claim::kNotifier)) return false;
    {
      const detail::SpinGuard guard(lock_);
      if (wait_.has_begun()) wait_.cancel();
      cancelled_ = true;
    }
    wake(wait_.waker());
    return true;
  }

  // Relaxed: the caller already has a reference.
  void retain() noexcept { references_.fetch_add(1, relaxed); }
  void release() noexcept override {
    const std::uint32_t before = references_.fetch_sub(1, acq_rel);  // [alarm]
    WEFT_INVARIANT(before > 0 && before <= 3, "TimedTask I3: handle, fiber and errand are counted");
    if (before == 1) delete this;
  }

 private:
  void begin_wait() noexcept {
    const detail::SpinGuard guard(lock_);
    WEFT_INVARIANT(!wait_.has_begun(), "TimedTask I2: the wait begins once, and is not cancelled");
    if (!cancelled_) wait_.begin();
  }
  // The fiber calls this function. The task is moved out first, so that its captures are destroyed
  // in this call, and not when the last reference is released.
  void run() {
    Task task = std::move(task_);
    const bool due = claim_.winner() == Claim::kClock;
    WEFT_INVARIANT(due || claim_.winner() == Claim::kNotifier,
                   "TimedTask I1: the clock or a canceller has won before the fiber runs");
    release();
    if (due) task.run();
  }

  Claim claim_;
  scheduler::TimedWait wait_;
  Task task_;
  SpinLock lock_;
  bool cancelled_ WEFT_GUARDED_BY(lock_) = false;
  Atomic<std::uint32_t> references_{2};
};

}  // namespace

Alarm* set_alarm(Deadline deadline, Task&& task) {
  auto owner = std::make_unique<TimedTask>(deadline, std::move(task));
  const scheduler::Destination runtime;
  owner->make_fiber(runtime);
  TimedTask& made = *owner.release();
  AlarmHandle handle(&made);
  try {
    made.start_clock(runtime);
  } catch (...) {
    // The fiber already exists; after the cancellation it ends without running the task.
    (void)handle->cancel();
    throw;
  }
  return handle.release();
}

}  // namespace weft::detail
