// The workers of a pool: how many there are in each state, and the list of idle workers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <weft/detail/invariant.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/pool_options.hpp>

#include "pool/core/effects.hpp"
#include "pool/core/timing_book.hpp"
#include "pool/core/worker_objects.hpp"

namespace weft::pool {

// The pool's record of a worker, on the worker's stack.
struct PoolWorker : detail::Waiter {
  PoolWorker() noexcept = default;
  explicit PoolWorker(WorkerObjects& its_objects) noexcept : objects(&its_objects) {}
  [[nodiscard]] bool has_objects() const noexcept {
    return objects != nullptr && !objects->empty();
  }

  WorkerObjects* const objects = nullptr;  // Null if the worker never has FiberLocal values.
  PoolWorker* hotter = nullptr;            // The worker in front of this one in the idle list.
  PoolWorker* colder = nullptr;            // The worker behind this one in the idle list.
  std::uint64_t idle_since = 0;            // The WorkerSet's epoch_ when the worker went idle.
  std::uint64_t number = 0;                // The running task's number, as in TaskInfo.
  bool starting = true;                    // True until the worker looks for a task.
  // Whether its last task may have made room for more than one task.
  bool freed_more = false;
  bool retired = false;  // Set if the worker is retired while it is idle.
  // The outcome of its last task.
  detail::PoolJob::Outcome outcome = detail::PoolJob::Outcome::completed;
  std::exception_ptr thrown;  // The exception of a plain task, until it is reported.
  Lap lap;                    // The times of its last task, if they are measured.
  Effects effects;            // The waiters to wake, and the job to destroy, after the unlock.
};

// The pool's lock guards this object. A pool has limit() places for workers, and each live worker
// has one. A live worker either is looking for a task under the lock, or is in one of four states.
// A running worker has unlocked the pool to run a task. An idle worker is parked, in a list that
// begins with the most recently used worker. A starting worker has been spawned or woken, but is
// not looking for a task yet. A clearing worker has been retired, and is destroying the FiberLocal
// values of its tasks. In a sub-pool, drain tasks serve as workers; they are never idle.
// Invariants
//   I1  live() is the number of running, idle, starting and clearing workers, plus 1 while a worker
//       is looking for a task.
//   I2  From the front to the back of the list of idle workers, idle_since never increases.
//   I3  After a clearing worker has destroyed its FiberLocal values, it looks for a task, unless
//       leave_clearing() is called. Not asserted, because no field records whether it looks for a
//       task.
class WorkerSet {
 public:
  explicit WorkerSet(WakeOrder order) noexcept : order_(order) {}

  [[nodiscard]] std::size_t live() const noexcept { return staying_ + clearing_; }
  // Returns the number of live workers, except workers that are destroying FiberLocal values.
  [[nodiscard]] std::size_t staying() const noexcept { return staying_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_; }
  [[nodiscard]] std::size_t starting() const noexcept { return starting_; }
  // Returns the maximum number of live workers. If staying() exceeds this limit, the surplus
  // workers must be retired.
  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  void set_limit(std::size_t limit) noexcept {
    limit_ = limit;
    count_places();
  }
  [[nodiscard]] bool has_surplus() const noexcept { return staying_ > limit_; }
  // Returns whether another worker may be started.
  [[nodiscard]] bool has_place() const noexcept { return staying_ < places_; }
  [[nodiscard]] std::uint64_t started() const noexcept { return started_; }
  [[nodiscard]] std::uint64_t retired() const noexcept { return retired_; }

  void add() noexcept {
    ++staying_;
    ++started_;
  }
  void begin_start() noexcept {
    add();
    ++starting_;
    ++fresh_;
    check_live();
  }
  // Called when a worker that begin_start() has counted could not be started.
  void fail_start() noexcept {
    --started_;
    if (cancelled_starts_ > 0) {
      --cancelled_starts_;
      --retired_;
    } else {
      --starting_;
      --fresh_;
      --staying_;
    }
  }
  // Called when a spawned worker first looks for a task. Returns false if the worker has been
  // retired meanwhile.
  [[nodiscard]] bool arrive() noexcept {
    if (cancelled_starts_ > 0) {
      --cancelled_starts_;
      return false;
    }
    --starting_;
    --fresh_;
    return true;
  }
  // Called when a worker interrupts its search for a task to do other work. The worker must call
  // arrive_again() afterwards.
  void depart() noexcept { ++starting_; }
  // Called when a worker resumes its search after depart(), or begins to search because call() has
  // removed it from the list of idle workers.
  void arrive_again() noexcept { --starting_; }

  void go_idle(PoolWorker& worker) noexcept {
    WEFT_INVARIANT(hottest_ == nullptr || hottest_->idle_since <= epoch_,
                   "WorkerSet I2: the worker in front went idle last");
    worker.idle_since = epoch_;
    worker.hotter = nullptr;
    worker.colder = hottest_;
    (hottest_ == nullptr ? coldest_ : hottest_->hotter) = &worker;
    hottest_ = &worker;
    ++idle_;
    check_live();
  }
  // Removes the idle worker that the wake order selects; the caller must wake it. Requires an idle
  // worker.
  [[nodiscard]] PoolWorker& call() noexcept {
    ++starting_;
    return take(order_ == WakeOrder::lifo ? *hottest_ : *coldest_);
  }

  // Called when a worker leaves the pool, which may then start another worker.
  void leave() noexcept {
    --staying_;
    ++retired_;
    check_live();
  }
  // Called when a retired worker begins to destroy the objects of its tasks. Until it has finished,
  // the pool starts no other worker in its place.
  void begin_clearing() noexcept {
    --staying_;
    ++clearing_;
    count_places();
  }
  // Called when a clearing worker has destroyed the objects; the worker then looks for a task.
  void end_clearing() noexcept {
    ++staying_;
    --clearing_;
    count_places();
  }
  // Called when a clearing worker leaves the pool before it has destroyed all objects, because the
  // destructor of an object waits for the pool.
  void leave_clearing() noexcept {
    end_clearing();
    leave();
  }
  // Retires the worker that has been idle longest. If the worker has no objects, another worker may
  // replace it at once, although its fiber has not ended yet. While a worker destroys its objects,
  // the pool accepts tasks as before. After that, the worker runs these tasks if no other worker is
  // available. Requires an idle worker.
  void retire_coldest(Effects& effects) noexcept {
    PoolWorker& worker = take(*coldest_);
    worker.retired = true;
    worker.has_objects() ? begin_clearing() : leave();
    effects.wake(worker);
  }
  // Returns whether a spawned worker has not arrived yet.
  [[nodiscard]] bool has_fresh() const noexcept { return fresh_ > 0; }
  // Retires a spawned worker that has not arrived yet; its arrive() then returns false. Such a
  // worker has no objects to destroy. Requires that has_fresh() returns true.
  void retire_fresh() noexcept {
    --starting_;
    --fresh_;
    ++cancelled_starts_;
    leave();
  }
  void retire_idle(Effects& effects) noexcept {
    while (idle_ > 0) retire_coldest(effects);
  }
  // Retires idle workers first, and then spawned workers that have not arrived. A worker that
  // call() has removed from the list is retired only when it arrives, because it may have objects
  // that it must destroy first.
  void retire_surplus(Effects& effects) noexcept {
    while (has_surplus() && idle_ > 0) retire_coldest(effects);
    while (has_surplus() && has_fresh()) retire_fresh();
  }
  void end_epoch() noexcept { ++epoch_; }
  // An epoch lasts one idle timeout. Two changes of the epoch prove an idle time of one timeout.
  [[nodiscard]] bool coldest_is_stale() const noexcept {
    return idle_ > 0 && epoch_ - coldest_->idle_since >= 2;
  }

  // Called when a task waits for its own pool and therefore gives its slot back.
  void release() noexcept {
    --staying_;
    check_live();
  }
  void reacquire() noexcept { ++staying_; }

 private:
  void check_live() const noexcept {
    WEFT_INVARIANT(idle_ + starting_ <= staying_,
                   "WorkerSet I1: idle and starting workers are living");
  }
  [[nodiscard]] PoolWorker& take(PoolWorker& worker) noexcept {
    (worker.hotter == nullptr ? hottest_ : worker.hotter->colder) = worker.colder;
    (worker.colder == nullptr ? coldest_ : worker.colder->hotter) = worker.hotter;
    --idle_;
    return worker;
  }
  // Stores the result in places_, because each submit() needs it.
  void count_places() noexcept { places_ = limit_ - std::min(limit_, clearing_); }

  std::size_t starting_ = 0;
  std::size_t idle_ = 0;
  PoolWorker* hottest_ = nullptr;
  PoolWorker* coldest_ = nullptr;
  std::size_t staying_ = 0;
  std::size_t limit_ = 0;
  std::size_t places_ = 0;  // limit_ minus clearing_, but at least 0.
  std::size_t clearing_ = 0;
  std::size_t fresh_ = 0;  // The starting workers that were spawned, not woken.
  // The number of spawned workers that were retired before they arrived.
  std::size_t cancelled_starts_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t retired_ = 0;
  const WakeOrder order_;
};

}  // namespace weft::pool
