// The workers of a pool: how many there are, and which of them idle.
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

// A worker as its pool knows it; lives on the worker's stack.
struct Worker : detail::Waiter {
  Worker() noexcept = default;
  explicit Worker(WorkerObjects& its_objects) noexcept : objects(&its_objects) {}
  [[nodiscard]] bool has_objects() const noexcept {
    return objects != nullptr && !objects->empty();
  }

  WorkerObjects* const objects = nullptr;  // Null: there are none.
  Worker* hotter = nullptr;                // In the order of idling.
  Worker* colder = nullptr;                //
  std::uint64_t idle_since = 0;            // The epoch when it went idle.
  std::uint64_t number = 0;                // Of the task it runs, as in TaskInfo.
  bool starting = true;                    // Counted as such until it looks for a task.
  bool freed_more = false;                 // Its last task may have let more than one other start.
  bool retired = false;                    // Set when it was taken for good, while it idled.
  // The outcome of its last task.
  detail::PoolJob::Outcome outcome = detail::PoolJob::Outcome::completed;
  std::exception_ptr thrown;  // By a plain one, until it is reported.
  Lap lap;                    // Of that task, if times are taken.
  Effects effects;            // Of the end of that task.
};

// A plain value; its owner has the lock. A worker that lives is running a task; or idle, in a list
// with the one used last in front; or starting: spawned or woken, and not looking for a task yet;
// or clearing: it is being retired and destroys what its tasks have left. A sub-pool's workers are
// its drain tasks, which never idle. Invariants
//   I1  live() = running + idle() + starting() + clearing (+ the worker that is looking).
//   I2  idle_since never increases from front to back.
//   I3  A worker that clears comes to look for a task when it is done, unless it has given its
//       place up. Until then no other takes its place. Unchecked: it is about what comes later.
class WorkerSet {
 public:
  explicit WorkerSet(WakeOrder order) noexcept : order_(order) {}

  [[nodiscard]] std::size_t live() const noexcept { return staying_ + clearing_; }
  // The same without workers that clear.
  [[nodiscard]] std::size_t staying() const noexcept { return staying_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_; }
  [[nodiscard]] std::size_t starting() const noexcept { return starting_; }
  // Returns how many may live: more are surplus, and are retired, as workers that clear are
  // already.
  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  void set_limit(std::size_t limit) noexcept {
    limit_ = limit;
    count_places();
  }
  [[nodiscard]] bool has_surplus() const noexcept { return staying_ > limit_; }
  // Returns whether another may be started.
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
  // A worker that was to start will not come.
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
  // A worker that was spawned comes to look for a task, for the first time. Returns false if its
  // slot was taken meanwhile.
  [[nodiscard]] bool arrive() noexcept {
    if (cancelled_starts_ > 0) {
      --cancelled_starts_;
      return false;
    }
    --starting_;
    --fresh_;
    return true;
  }
  // A worker that looks for a task does something else first, and comes again.
  void depart() noexcept { ++starting_; }
  // It comes again, or one that was called comes.
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
  // Takes the idle worker whose turn it is; the caller owes it a wake. Requires that there is one.
  [[nodiscard]] Worker& call() noexcept {
    ++starting_;
    return take(order_ == WakeOrder::lifo ? *hottest_ : *coldest_);
  }

  // A worker that runs or looks gives its place up.
  void leave() noexcept {
    --staying_;
    ++retired_;
    check_live();
  }
  // It keeps its place while it destroys what its tasks have left.
  void begin_clearing() noexcept {
    --staying_;
    ++clearing_;
    count_places();
  }
  // It is done, and looks for a task.
  void end_clearing() noexcept {
    ++staying_;
    --clearing_;
    count_places();
  }
  // It gives its place up before it is done, for good.
  void leave_clearing() noexcept {
    end_clearing();
    leave();
  }
  // The one that has idled longest. Without objects its place is free at once, though its fiber has
  // yet to end. No caller is refused or blocked because a worker is being retired: a task that
  // comes while it clears, and finds no other place, is accepted, and this worker takes it then.
  // Requires that there is one.
  void retire_coldest(Effects& effects) noexcept {
    Worker& worker = take(*coldest_);
    worker.retired = true;
    worker.has_objects() ? begin_clearing() : leave();
    effects.wake(worker);
  }
  // Returns whether a worker that was spawned has yet to arrive.
  [[nodiscard]] bool has_fresh() const noexcept { return fresh_ > 0; }
  // Retires such a worker, which notices when it arrives, and has no objects. Requires that there
  // is one.
  void retire_fresh() noexcept {
    --starting_;
    --fresh_;
    ++cancelled_starts_;
    leave();
  }
  void retire_idle(Effects& effects) noexcept {
    while (idle_ > 0) retire_coldest(effects);
  }
  // Idle workers go first, then spawned ones. One that was called finds out when it comes: it may
  // have objects.
  void retire_surplus(Effects& effects) noexcept {
    while (has_surplus() && idle_ > 0) retire_coldest(effects);
    while (has_surplus() && has_fresh()) retire_fresh();
  }
  void end_epoch() noexcept { ++epoch_; }
  // A note that is two epochs old was made at least one and at most two epochs ago.
  [[nodiscard]] bool coldest_is_stale() const noexcept {
    return idle_ > 0 && epoch_ - coldest_->idle_since >= 2;
  }

  // With the slot of a task that waits for its own pool.
  void release() noexcept {
    --staying_;
    check_live();
  }
  void reacquire() noexcept { ++staying_; }

 private:
  void check_live() const noexcept {
    WEFT_INVARIANT(idle_ + starting_ <= staying_, "WorkerSet I1: who idles or starts lives");
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
  std::size_t fresh_ = 0;             // Starting workers that were spawned.
  std::size_t cancelled_starts_ = 0;  // The next spawned ones to arrive that have no slot.
  std::uint64_t epoch_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t retired_ = 0;
  const WakeOrder order_;
};

}  // namespace weft::pool
