// The workers of a pool: how many there are, and which of them idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <weft/detail/invariant.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/pool_options.hpp>

#include "pool/core/effects.hpp"
#include "pool/core/timing_book.hpp"

namespace weft::pool {

// A worker as its pool knows it; lives on the worker's stack.
struct Worker : detail::Waiter {
  Worker* hotter = nullptr;      // In the order of idling.
  Worker* colder = nullptr;      //
  std::uint64_t idle_since = 0;  // The epoch when it went idle.
  std::uint64_t number = 0;      // Of the task it runs, as in TaskInfo.
  bool starting = true;          // Counted as such until it looks for a task.
  bool freed_more = false;       // Its last task may have let more than one other start.
  bool retired = false;          // Set when it was taken, with its slot, for good.
  detail::PoolJob::Outcome outcome = detail::PoolJob::Outcome::completed;  // Of its last task.
  std::exception_ptr thrown;  // By a plain one, until it is reported.
  Lap lap;                    // Of that task, if times are taken.
  Effects effects;            // Of the end of that task.
};

// A plain value; its owner has the lock. A worker that lives is running a task; or idle, in a list
// with the one used last in front; or starting: spawned or woken, and not looking for a task yet. A
// sub-pool's workers are its drain tasks, which never idle. Invariants
//   I1  live() = running + idle() + starting() (+ the worker that is looking).
//   I2  idle_since never increases from front to back.
class WorkerSet {
 public:
  explicit WorkerSet(WakeOrder order) noexcept : order_(order) {}

  [[nodiscard]] std::size_t live() const noexcept { return live_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_; }
  [[nodiscard]] std::size_t starting() const noexcept { return starting_; }
  // How many may live: more are surplus.
  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  void set_limit(std::size_t limit) noexcept { limit_ = limit; }
  [[nodiscard]] bool has_surplus() const noexcept { return live_ > limit_; }
  [[nodiscard]] std::uint64_t started() const noexcept { return started_; }
  [[nodiscard]] std::uint64_t retired() const noexcept { return retired_; }

  void add() noexcept {
    ++live_;
    ++started_;
  }
  void begin_start() noexcept {
    add();
    ++starting_;
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
      --live_;
    }
  }
  // A starting worker comes to look for a task. False if its slot was taken meanwhile.
  [[nodiscard]] bool arrive() noexcept {
    if (cancelled_starts_ > 0) {
      --cancelled_starts_;
      return false;
    }
    --starting_;
    return true;
  }
  // A worker that looks for a task does something else first, and comes again.
  void depart() noexcept { ++starting_; }
  // At once, under the same hold of the lock.
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
    --live_;
    ++retired_;
    check_live();
  }
  // The one that has idled longest. Its slot is free at once, though its fiber has yet to end:
  // nobody is refused or blocked because a worker is being retired. Requires that there is one.
  void retire_coldest(Effects& effects) noexcept {
    Worker& worker = take(*coldest_);
    worker.retired = true;
    leave();
    effects.wake(worker);
  }
  // Retires a starting worker, which notices when it arrives. Requires that there is one.
  void retire_starting() noexcept {
    --starting_;
    ++cancelled_starts_;
    leave();
  }
  void retire_idle(Effects& effects) noexcept {
    while (idle_ > 0) retire_coldest(effects);
  }
  // Idle workers go first, then starting ones.
  void retire_surplus(Effects& effects) noexcept {
    while (has_surplus() && idle_ > 0) retire_coldest(effects);
    while (has_surplus() && starting_ > 0) retire_starting();
  }
  void end_epoch() noexcept { ++epoch_; }
  // A note that is two epochs old was made at least one and at most two epochs ago.
  [[nodiscard]] bool coldest_is_stale() const noexcept {
    return idle_ > 0 && epoch_ - coldest_->idle_since >= 2;
  }

  // With the slot of a task that waits for its own pool.
  void release() noexcept {
    --live_;
    check_live();
  }
  void reacquire() noexcept { ++live_; }

 private:
  void check_live() const noexcept {
    WEFT_INVARIANT(idle_ + starting_ <= live_, "WorkerSet I1: who idles or starts lives");
  }
  [[nodiscard]] Worker& take(Worker& worker) noexcept {
    (worker.hotter == nullptr ? hottest_ : worker.hotter->colder) = worker.colder;
    (worker.colder == nullptr ? coldest_ : worker.colder->hotter) = worker.hotter;
    --idle_;
    return worker;
  }

  std::size_t starting_ = 0;
  std::size_t idle_ = 0;
  Worker* hottest_ = nullptr;
  Worker* coldest_ = nullptr;
  std::size_t live_ = 0;
  std::size_t limit_ = 0;
  std::size_t cancelled_starts_ = 0;  // The next so many that arrive have no slot.
  std::uint64_t epoch_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t retired_ = 0;
  const WakeOrder order_;
};

}  // namespace weft::pool
