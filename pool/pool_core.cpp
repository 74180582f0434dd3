#include "pool/pool_core.hpp"

#include <utility>

namespace weft::pool {

using detail::PoolItem;
using detail::Waiter;
using detail::WaitReason;

PoolCore::PoolCore(PoolOptions options) : options_(std::move(options)) {
  set_capacity(options_.capacity);
}

void PoolCore::set_capacity(std::size_t capacity) noexcept {
  capacity_ = capacity;
  bound_ = capacity + options_.queue_capacity;
  if (bound_ < capacity) bound_ = kUnlimited;
}

std::error_code PoolCore::submit(PoolItem& item, OnFull when_full, const Until& until) {
  if (item.empty()) [[unlikely]]
    return Errc::empty_task;
  std::error_code error;
  lock_.lock();
  if (accept_if_room(item, error) != Verdict::full) [[likely]]
    return error;
  switch (when_full) {
    case OnFull::reject:
      return refuse(Errc::full);
    case OnFull::caller_runs:
      if (paused_) break;
      run_in_caller(item);
      return {};
    case OnFull::drop_oldest:
      return submit_dropping(item);
    case OnFull::block:
      break;
  }
  lock_.unlock();
  return submit_blocking(item, until);
}

PoolCore::Verdict PoolCore::accept_if_room(PoolItem& item, std::error_code& error) noexcept {
  for (;;) {
    if (closed_) [[unlikely]] {
      error = refuse(Errc::closed);
      return Verdict::refused;
    }
    if (!has_room() || !blocked_.empty()) return Verdict::full;
    if (must_grow(queue_.size() + 1)) [[unlikely]] {
      // The worker is started first, so that an item is accepted only with somebody to run it.
      error = start_worker();
    } else if (!queue_.has_room()) [[unlikely]] {
      if (!grow_queue()) error = std::make_error_code(std::errc::not_enough_memory);
    } else {
      break;
    }
    if (error) {
      lock_.unlock();
      return Verdict::refused;
    }
  }
  queue_.push(std::move(item));
  ++submitted_;
  Worker* const called = queue_wants_worker() ? &call_hottest() : nullptr;
  lock_.unlock();
  if (called != nullptr) detail::wake(called->waker);
  return Verdict::accepted;
}

std::error_code PoolCore::submit_blocking(PoolItem& item, const Until& until) {
  const Loan loan(this);
  for (;;) {
    std::error_code error;
    lock_.lock();
    if (accept_if_room(item, error) != Verdict::full) return error;
    if (blocked_count_ >= options_.max_blocked) return refuse(Errc::too_many_waiting);
    if (queue_.each_pop_makes_room()) break;
    // Who hands a blocked party's item on must not have to allocate (I4).
    const bool grown = grow_queue();
    lock_.unlock();
    if (!grown) return std::make_error_code(std::errc::not_enough_memory);
  }
  Waiter self;
  self.slot = &item;
  ++blocked_count_;
  const auto winner = detail::wait_in_until(blocked_, lock_, self, WaitReason::pool_submit, until);
  if (winner == detail::Claim::kNotifier) {
    // By close(), if not granted; the pool may be gone by now.
    return self.granted ? std::error_code() : make_error_code(Errc::closed);
  }
  lock_.lock();
  --blocked_count_;
  return refuse(winner == detail::Claim::kStop ? Errc::cancelled : Errc::timed_out);
}

// Requires lock_, and releases it. One item takes the place of another, so nobody who waits for
// room is passed over.
std::error_code PoolCore::submit_dropping(PoolItem& item) {
  PoolItem dropped;  // Destroyed without the lock: its waiters are told.
  for (;;) {
    if (queue_.empty()) return refuse(Errc::full);
    if (queue_.each_pop_makes_room()) break;
    const bool grown = grow_queue();  // Releases lock_ meanwhile.
    std::error_code error;
    if (!grown) {
      lock_.unlock();
      return std::make_error_code(std::errc::not_enough_memory);
    }
    if (accept_if_room(item, error) != Verdict::full) return error;
  }
  queue_.pop(dropped);
  ++cancelled_;
  queue_.push(std::move(item));
  ++submitted_;
  lock_.unlock();
  return {};
}

// Requires lock_, and releases it.
std::error_code PoolCore::refuse(Errc why) noexcept {
  ++rejected_;
  lock_.unlock();
  return why;
}

void PoolCore::run_in_caller(PoolItem& item) noexcept {
  ++submitted_;
  ++in_callers_;
  lock_.unlock();
  const auto outcome = execute(item);
  WakeChain wakes;
  lock_.lock();
  --in_callers_;
  count(outcome);
  tell_if_still(wakes);
  tell_if_quiet(wakes);
  tell_if_gone(wakes);
  lock_.unlock();
  wakes.wake_all();
  if (item.job != nullptr) std::exchange(item.job, nullptr)->settle(outcome);
}

bool PoolCore::grow_queue() noexcept {
  const std::size_t size = queue_.next_segment_size();
  lock_.unlock();
  ItemQueue::Segments segments = ItemQueue::make_segment(size);
  lock_.lock();
  if (segments == nullptr) return false;
  segments = queue_.add(std::move(segments));
  if (segments != nullptr) {
    lock_.unlock();
    segments.reset();
    lock_.lock();
  }
  return true;
}

// Hands the item of the party that has been blocked longest to the queue, or to a worker that
// found the queue empty. False if nobody is blocked.
bool PoolCore::admit_one(PoolItem* instead_of_queue, WakeChain& wakes) noexcept {
  Waiter* submitter = blocked_.claim_front();
  if (submitter == nullptr) return false;
  --blocked_count_;
  ++submitted_;
  PoolItem& item = *static_cast<PoolItem*>(submitter->slot);
  if (instead_of_queue != nullptr) {
    *instead_of_queue = std::move(item);
  } else {
    queue_.push(std::move(item));
  }
  submitter->granted = true;
  wakes.add(*submitter);
  return true;
}

void PoolCore::admit_blocked(WakeChain& wakes) noexcept {
  while (!blocked_.empty() && has_room() && queue_.has_room() && admit_one(nullptr, wakes)) {
  }
}

// Takes the hottest idle worker, to be woken by the caller. Requires that there is one.
Worker& PoolCore::call_hottest() noexcept {
  ++waking_;
  return idle_.pop();
}

void PoolCore::count(detail::PoolJob::Outcome outcome) noexcept {
  using Outcome = detail::PoolJob::Outcome;
  if (outcome == Outcome::completed) {
    ++completed_;
  } else if (outcome == Outcome::failed) {
    ++failed_;
  } else {
    ++cancelled_;
  }
}

}  // namespace weft::pool
