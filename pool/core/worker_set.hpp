// The workers of a pool: their number, and the list of idle ones.
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
struct Worker : detail::Waiter {
  Worker() noexcept = default;
  explicit Worker(WorkerObjects& its_objects) noexcept : objects(&its_objects) {}
  [[nodiscard]] bool has_objects() const noexcept {
    return objects != nullptr && !objects->empty();
  }

  WorkerObjects* const objects = nullptr;  // Null if there are none.
  Worker* hotter = nullptr;                // The neighbour that went idle later.
  Worker* colder = nullptr;                //
  std::uint64_t idle_since = 0;            // The epoch when it went idle.
  std::uint64_t number = 0;                // The number of the task it runs, as in TaskInfo.
  bool starting = true;                    // True until the worker looks for a task.
  // Its last task may have made room for more than one other.
  bool freed_more = false;
  bool retired = false;  // Set when it was retired while it idled.
  // The outcome of its last task.
  detail::PoolJob::Outcome outcome = detail::PoolJob::Outcome::completed;
  std::exception_ptr thrown;  // The exception of a plain task, until it is reported.
  Lap lap;                    // The times of that task, if they are measured.
  Effects effects;            // The effects of the end of that task.
};

// A plain value, guarded by its owner's lock. A live worker is in one of four states. It is running
// a task; or idle, in a list with the most recently used one in front; or starting: spawned or
// woken, but not looking for a task yet; or clearing: it is being retired and destroys the objects
// of its tasks. A sub-pool's workers are its drain tasks, which never idle.
// Invariants
//   I1  live() = running + idle() + starting() + clearing (+ the worker that is looking).
//   I2  idle_since never increases from front to back.
//   I3  When a clearing worker is done, it looks for a task, unless it has given up its place.
//       Until then no other worker takes that place. Unchecked: it concerns the future.
class WorkerSet {
 public:
  explicit WorkerSet(WakeOrder order) noexcept : order_(order) {}

  [[nodiscard]] std::size_t live() const noexcept { return staying_ + clearing_; }
  // Does the same without clearing workers.
  [[nodiscard]] std::size_t staying() const noexcept { return staying_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_; }
  [[nodiscard]] std::size_t starting() const noexcept { return starting_; }
  // Returns how many workers may live: any more are surplus and must be retired, as clearing
  // workers already are.
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
  // A starting worker could not be started.
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
  // A spawned worker arrives to look for a task, for the first time. Returns false if its slot was
  // taken meanwhile.
  [[nodiscard]] bool arrive() noexcept {
    if (cancelled_starts_ > 0) {
      --cancelled_starts_;
      return false;
    }
    --starting_;
    --fresh_;
    return true;
  }
  // A worker that looks for a task first does other work, and will arrive again.
  void depart() noexcept { ++starting_; }
  // The worker arrives again, or a called worker arrives.
  void arrive_again() noexcept { --starting_; }

  void go_idle(Worker& worker) noexcept {
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
  // Takes the idle worker that is next; the caller must wake it. Requires that there is one.
  [[nodiscard]] Worker& call() noexcept {
    ++starting_;
    return take(order_ == WakeOrder::lifo ? *hottest_ : *coldest_);
  }

  // A running or looking worker gives up its place.
  void leave() noexcept {
    --staying_;
    ++retired_;
    check_live();
  }
  // The worker keeps its place while it destroys the objects of its tasks.
  void begin_clearing() noexcept {
    --staying_;
    ++clearing_;
    count_places();
  }
  // It has finished and looks for a task.
  void end_clearing() noexcept {
    ++staying_;
    --clearing_;
    count_places();
  }
  // It gives up its place permanently before it has finished.
  void leave_clearing() noexcept {
    end_clearing();
    leave();
  }
  // Retires the worker that has idled longest. If it has no objects, its place is free at once,
  // though its fiber has yet to end. Retiring a worker never refuses or blocks a caller: a task
  // that arrives while it clears, and finds no other place, is accepted, and this worker then runs
  // it. Requires that there is one.
  void retire_coldest(Effects& effects) noexcept {
    Worker& worker = take(*coldest_);
    worker.retired = true;
    worker.has_objects() ? begin_clearing() : leave();
    effects.wake(worker);
  }
  // Returns whether a spawned worker has yet to arrive.
  [[nodiscard]] bool has_fresh() const noexcept { return fresh_ > 0; }
  // Retires such a worker, which notices it on arrival, and has no objects. Requires that there is
  // one.
  void retire_fresh() noexcept {
    --starting_;
    --fresh_;
    ++cancelled_starts_;
    leave();
  }
  void retire_idle(Effects& effects) noexcept {
    while (idle_ > 0) retire_coldest(effects);
  }
  // Idle workers go first, then spawned ones. A called worker finds out when it arrives, because it
  // may have objects.
  void retire_surplus(Effects& effects) noexcept {
    while (has_surplus() && idle_ > 0) retire_coldest(effects);
    while (has_surplus() && has_fresh()) retire_fresh();
  }
  void end_epoch() noexcept { ++epoch_; }
  // A note that is two epochs old was made at least one and at most two epochs ago.
  [[nodiscard]] bool coldest_is_stale() const noexcept {
    return idle_ > 0 && epoch_ - coldest_->idle_since >= 2;
  }

  // A task gives its slot back while it waits for its own pool.
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
  [[nodiscard]] Worker& take(Worker& worker) noexcept {
    (worker.hotter == nullptr ? hottest_ : worker.hotter->colder) = worker.colder;
    (worker.colder == nullptr ? coldest_ : worker.colder->hotter) = worker.hotter;
    --idle_;
    return worker;
  }
  // Kept apart from limit_ because each submit compares it.
  void count_places() noexcept { places_ = limit_ - std::min(limit_, clearing_); }

  std::size_t starting_ = 0;
  std::size_t idle_ = 0;
  Worker* hottest_ = nullptr;
  Worker* coldest_ = nullptr;
  std::size_t staying_ = 0;
  std::size_t limit_ = 0;
  std::size_t places_ = 0;  // The limit, less the workers that clear.
  std::size_t clearing_ = 0;
  std::size_t fresh_ = 0;  // Starting workers that were spawned.
  // The number of spawned workers that find no slot when they arrive.
  std::size_t cancelled_starts_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t retired_ = 0;
  const WakeOrder order_;
};

}  // namespace weft::pool
