// The life of a worker: it arrives, runs tasks, idles, and leaves.
#include <exception>
#include <utility>
#include <weft/this_fiber.hpp>

#include "pool/pool_core.hpp"
#include "pool/registry.hpp"
#include "pool/spawn_fiber.hpp"

namespace weft::pool {

using detail::PoolItem;
using Outcome = detail::PoolJob::Outcome;

namespace {

// An arriving worker that sees more items than awaited workers calls so many. Two make the calls
// a tree: n blocking tasks have n workers after log2(n) passes through the run queue.
constexpr int kCallsOnArrival = 2;

}  // namespace

void PoolCore::work() noexcept {
  PoolItem item;
  const Registration registration(*this, item);
  Worker self;
  self.waker = detail::current();
  lock_.lock();
  while (next_item(self, item)) {
    self.outcome = execute(item, self.number, self.lap);
    lock_.lock();
    end_task(self, item);
  }
  leave();
}

// Requires lock_, and releases it. True with an item to run, whose slot is counted as running;
// false when the worker has been retired, and its slot is no longer counted as live.
//
// The waiters of a finished job are woken once its slot has been used otherwise or is free: so
// who waits for a task can count on its slot.
bool PoolCore::next_item(Worker& self, PoolItem& item) noexcept {
  bool try_reaper = true;
  bool try_admitting = true;
  for (;;) {
    const bool arriving = self.awaited;
    if (arriving && !arrive(self)) return false;
    WakeChain wakes;
    wakes.add_all(std::exchange(self.told, nullptr));
    tell_if_counted(wakes);
    const bool had_lenders = !returning_.empty();
    if (had_lenders) return_slots(wakes);
    const bool surplus = live_ > limit_;
    const int calls = arriving || self.freed_more || had_lenders ? kCallsOnArrival : 0;
    if (!surplus && !paused_ && take_item(item, calls, wakes)) {
      self.number = left_queue();
      // Without fibers or memory the pool goes on with the workers it has.
      if (calls > 0 && must_grow(queue_.startable())) (void)grow(queue_.startable());
      set_out(self, wakes);
      return true;
    }
    tell_if_still(wakes);
    tell_if_quiet(wakes);
    if (surplus || (closed_ && queue_.startable() == 0)) {
      give_up_slot(wakes);
      admit_after_leaving(wakes);
      release_unused(self);
      return false;
    }
    if (self.unused != nullptr || !wakes.empty()) {
      step_out(self);
      wakes.wake_all();
      release_unused(self);
      lock_.lock();
    } else if (try_admitting && must_admit_without_start()) {
      step_out(self);
      lock_.lock();
      match_up();
      try_admitting = false;  // If it was of no use, there is no memory.
      lock_.lock();
    } else if (try_reaper && reaper_is_due()) {
      announce_reaper();
      step_out(self);
      try_reaper = start_reaper();
      lock_.lock();
    } else {
      if (!idle(self)) return false;
      lock_.lock();
    }
  }
}

// Requires lock_, and releases it. False if the worker was retired meanwhile.
bool PoolCore::idle(Worker& self) noexcept {
  self.idle_since = epoch_;
  self.awaited = true;  // By the time it comes back.
  idle_.push(self);
  detail::park(detail::unlock_after(lock_), detail::WaitReason::pool_idle);
  return !self.retired;
}

// Requires lock_, and releases it: the worker has a task to run.
void PoolCore::set_out(Worker& self, WakeChain& wakes) noexcept {
  // A task with terms leaves room, but no place in the queue of plain ones.
  const bool lacks_place = !blocked_.empty() && has_room() && !queue_.has_room_for_plain();
  lock_.unlock();
  wakes.wake_all();
  release_unused(self);
  if (lacks_place) [[unlikely]]
    match_up_now();
}

// Requires lock_. Turns an awaited worker into one that looks for a task. False, with lock_
// released, if its slot was taken meanwhile.
bool PoolCore::arrive(Worker& self) noexcept {
  if (doomed_ > 0) {
    --doomed_;
    lock_.unlock();
    return false;
  }
  --waking_;
  self.awaited = false;
  return true;
}

// Releases lock_, for what must not be done under it. Meanwhile the worker is counted as awaited,
// since it will look for a task again.
void PoolCore::step_out(Worker& self) noexcept {
  ++waking_;
  self.awaited = true;
  lock_.unlock();
}

// Requires lock_. Takes the next accepted item; without one, that of a blocked party. Calls up
// to `calls` idle workers for the items that are left.
bool PoolCore::take_item(PoolItem& item, int calls, WakeChain& wakes) noexcept {
  if (queue_.startable() == 0 && extra_running_ == 0 && reserved_ == 0 && admit_one(&item, wakes)) {
    ++running_;
    if (calls == 0) return true;  // Otherwise there may be room for more than one.
  } else {
    if (queue_.startable() == 0) admit_blocked(wakes);
    if (queue_.startable() == 0) return false;
    if (!next_fits()) {
      // The task that ended has left room all the same.
      if (!blocked_.empty()) admit_blocked(wakes);
      return false;
    }
    queue_.pop(item);
    ++running_;
    if (Backlog::terms_of(item) != nullptr) begin_terms(item);
  }
  if (!blocked_.empty()) admit_blocked(wakes);
  for (; calls > 0 && waking_ < queue_.startable() && !idle_.empty() && next_fits(); --calls) {
    wakes.add(call_idle());
  }
  return true;
}

// Requires lock_. The worker's slot is no longer counted as live: there are too many, or the pool
// is closed and the queue empty.
void PoolCore::give_up_slot(WakeChain& wakes) noexcept {
  --live_;
  ++retired_;
  if (closed_ && queue_.empty()) retire_all_without_task(wakes);
  retire_surplus(wakes);
  admit_blocked(wakes);
}

// Requires lock_, and releases it. Who leaves makes room without a pop, so the queue may have to
// grow for who is let in.
void PoolCore::admit_after_leaving(WakeChain& wakes) noexcept {
  const bool may_admit_more = !blocked_.empty() && has_room();
  lock_.unlock();
  wakes.wake_all();
  if (!may_admit_more) return;
  lock_.lock();
  match_up();
}

void PoolCore::leave() noexcept {
  WakeChain wakes;
  leave_silently(wakes);
  wakes.wake_all();
}

void PoolCore::leave_silently(WakeChain& wakes) noexcept {
  lock_.lock();
  --present_;
  tell_if_gone(wakes);
  lock_.unlock();
}

// `number` as in TaskInfo.
Outcome PoolCore::execute(PoolItem& item, std::uint64_t number, Lap& lap) noexcept {
  if (timings_ == nullptr) [[likely]]
    return run(item, number);
  lap.submitted = item.submitted_at;
  lap.started = Deadline::now_nanoseconds();
  const Outcome outcome = run(item, number);
  lap.ended = Deadline::now_nanoseconds();
  return outcome;
}

Outcome PoolCore::run(PoolItem& item, std::uint64_t number) noexcept {
  if (item.job != nullptr) return execute_job(*item.job, number);
  std::exception_ptr exception;
  try {
    item.task.run();
    return Outcome::completed;
  } catch (...) {
    exception = std::current_exception();
  }
  // Not inside the catch block: on_exception may park.
  report(exception, {.pool = options_.name,
                     .number = number,
                     .type = item.task.type_hint(),
                     .fiber = this_fiber::id()});
  return Outcome::failed;
}

Outcome PoolCore::execute_job(detail::PoolJob& job, std::uint64_t number) noexcept {
  const Outcome outcome = job.execute();
  if (outcome != Outcome::failed || !job.is_unwatched()) return outcome;
  const auto [exception, type] = job.take_exception();
  if (exception) {
    report(exception,
           {.pool = options_.name, .number = number, .type = type, .fiber = this_fiber::id()});
  }
  return outcome;
}

std::error_code PoolCore::start_worker() noexcept {
  ++live_;
  ++waking_;
  ++present_;
  ++started_;
  lock_.unlock();
  const std::error_code error = spawn_fiber(options_, [this] { work(); });
  lock_.lock();
  if (!error) return {};
  --present_;
  --started_;
  forget_awaited();
  run_stranded_items();
  return error;
}

std::error_code PoolCore::start_worker_for(const PoolItem& item) noexcept {
  if (host_ == nullptr) return grow(queue_.startable_with(item));
  return call_visit(may_wait_for_host() ? OnFull::block : OnFull::reject);
}

// Requires lock_. An awaited worker will not come.
void PoolCore::forget_awaited() noexcept {
  if (doomed_ > 0) {
    --doomed_;
    --retired_;
  } else {
    --waking_;
    --live_;
  }
}

// Requires lock_; releases it meanwhile. Others may have accepted items because the worker that
// could not be started was to come. If no other lives, the caller runs them in its place.
void PoolCore::run_stranded_items() noexcept {
  while (live_ == 0 && queue_.startable() > 0 && !paused_ && in_line_ == 0) {
    WakeChain wakes;
    PoolItem item;
    ++live_;
    (void)take_item(item, 0, wakes);
    Worker self;
    self.number = left_queue();
    lock_.unlock();
    wakes.wake_all();
    self.outcome = execute(item, self.number, self.lap);
    lock_.lock();
    end_task(self, item);
    --live_;
    WakeChain ended;
    ended.add_all(self.told);
    lock_.unlock();
    ended.wake_all();
    release_unused(self);
    lock_.lock();
  }
  WakeChain wakes;
  tell_if_counted(wakes);
  return_slots(wakes);
  while (queue_wants_worker()) wakes.add(call_idle());
  tell_if_still(wakes);
  tell_if_quiet(wakes);
  tell_if_gone(wakes);
  lock_.unlock();
  wakes.wake_all();
  lock_.lock();
}

}  // namespace weft::pool
