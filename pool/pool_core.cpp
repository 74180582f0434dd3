#include "pool/pool_core.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <weft/detail/slot_loan.hpp>

namespace weft::pool {

using detail::PoolItem;
using detail::Waiter;
using detail::WaitReason;

namespace {

// Requires `lock`; releases it meanwhile. False when there is no memory.
bool reserve_unlocked(std::vector<PoolItem>& items, std::size_t size, detail::SpinLock& lock) {
  bool reserved = true;
  lock.unlock();
  try {
    items.reserve(size);
  } catch (const std::bad_alloc&) {
    reserved = false;
  }
  lock.lock();
  return reserved;
}

}  // namespace

PoolCore::PoolCore(PoolOptions options, const Place& place)
    : options_(std::move(options)),
      timings_(options_.timings ? std::make_unique<TimingBook>() : nullptr),
      host_(place.host),
      group_(place.group),
      number_(place.number),
      family_(host_ != nullptr         ? host_->family_
              : place.first != nullptr ? *place.first
                                       : *this) {
  set_capacity(options_.capacity);
  if (options_.prealloc) queue_.begin_with(bound_);
  if (host_ != nullptr) move_in();
}

PoolCore::~PoolCore() {
  end_family();
  while (detail::PoolTerms* spare = spares_) {
    spares_ = spare->next;
    spare->job->release_reference();
  }
}

void PoolCore::set_capacity(std::size_t capacity) noexcept {
  capacity_ = capacity;
  reserve(reserved_);
  set_limit(limit_);
  capacity_hint_.store(capacity, detail::relaxed);  // Relaxed: a hint.
}

std::error_code PoolCore::submit(PoolItem& item, OnFull when_full, const Until& until) {
  if (item.empty()) [[unlikely]]
    return Errc::empty_task;
  if (timings_ != nullptr) [[unlikely]]
    stamp(item);
  if (Backlog::terms_of(item) != nullptr) [[unlikely]] {
    if (const std::error_code over = item.job->over_before_start()) {
      lock_.lock();
      return refuse(over);
    }
  }
  std::error_code error;
  lock_.lock();
  if (accept_if_room(item, error) != Verdict::full) [[likely]]
    return error;
  switch (when_full) {
    case OnFull::reject:
      return refuse(Errc::full);
    case OnFull::caller_runs:
      if (paused_ || Backlog::has_key(item)) break;
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
    const std::size_t weight = Backlog::weight_of(item);
    if (weight > 1 && weight > capacity_) [[unlikely]] {
      error = refuse(Errc::too_heavy);
      return Verdict::refused;
    }
    if (!has_room(weight) || !blocked_.empty()) return Verdict::full;
    if (must_grow(queue_.startable_with(item)) && !(in_line_ > 0 && may_wait_for_host()))
        [[unlikely]] {
      // The worker is started first, so that an item is accepted only with somebody to run it.
      error = start_worker_for(item);
      if (error == Errc::full) return Verdict::full;
    } else if (!queue_.has_room_for(item)) [[unlikely]] {
      if (!grow_queue(item)) error = std::make_error_code(std::errc::not_enough_memory);
    } else {
      break;
    }
    if (error) {
      error = refuse(error);
      return Verdict::refused;
    }
  }
  book(item);
  note_load();
  Worker* const called = queue_wants_worker() ? &call_idle() : nullptr;
  lock_.unlock();
  if (called != nullptr) detail::wake(called->waker);
  return Verdict::accepted;
}

std::error_code PoolCore::submit_blocking(PoolItem& item, const Until& until) {
  const detail::SlotLoan loan(&family_);
  for (;;) {
    std::error_code error;
    lock_.lock();
    if (accept_if_room(item, error) != Verdict::full) return error;
    if (blocked_count_ >= options_.max_blocked) return refuse(Errc::too_many_waiting);
    if (must_stand_in_line(Backlog::weight_of(item))) {
      error = call_visit(OnFull::block);
      if (error) return refuse(error);
      lock_.unlock();
      continue;
    }
    if (queue_.will_have_room_for(item)) break;
    // Who hands a blocked party's item on must not have to allocate (I4).
    if (!grow_queue(item)) return refuse(std::make_error_code(std::errc::not_enough_memory));
    lock_.unlock();
  }
  Waiter self;
  self.slot = &item;
  ++blocked_count_;
  const auto* terms = Backlog::terms_of(item);
  const Until limit = terms == nullptr ? until : until.but_before(terms->deadline);
  const auto winner = detail::wait_in_until(blocked_, lock_, self, WaitReason::pool_submit, limit);
  if (winner == detail::Claim::kNotifier) {
    // By close(), if not granted; the pool may be gone by now.
    return self.granted ? std::error_code() : make_error_code(Errc::closed);
  }
  lock_.lock();
  --blocked_count_;
  ++rejected_;
  // Those behind one that was too heavy may fit.
  match_up();
  return winner == detail::Claim::kStop ? Errc::cancelled : Errc::timed_out;
}

// Requires lock_, and releases it. An item of weight 1 takes the place of another, so nobody who
// waits for room is passed over; a heavier one takes the places of several. It does so under one
// hold of the lock: what is sent in place of a dropped item, as a sub-pool does with its visits,
// comes too late.
std::error_code PoolCore::submit_dropping(PoolItem& item) {
  const std::size_t weight = Backlog::weight_of(item);
  PoolItem dropped;  // Destroyed without the lock: its waiters are told.
  std::vector<PoolItem> dropped_before;
  for (;;) {
    const bool is_enough = weight == 1 || has_room_beside(running_ + extra_running_, weight);
    if (queue_.empty() || !is_enough) return refuse(Errc::full);
    const std::size_t most = std::min(weight, queue_.size());
    const bool can_push = queue_.can_replace_oldest(item);
    if (can_push && dropped_before.capacity() + 1 >= most) break;
    std::error_code error;
    if (can_push ? !reserve_unlocked(dropped_before, most, lock_) : !grow_queue(item)) {
      return refuse(std::make_error_code(std::errc::not_enough_memory));
    }
    if (accept_if_room(item, error) != Verdict::full) return error;
  }
  drop_oldest(dropped);
  while (weight > 1 && !has_room(weight)) {
    dropped_before.push_back(std::move(dropped));
    drop_oldest(dropped);
  }
  book(item);
  match_up();
  return {};
}

// Requires lock_.
void PoolCore::drop_oldest(PoolItem& dropped) noexcept {
  queue_.pop_oldest(dropped);
  load_ -= Backlog::weight_of(dropped);
  ++cancelled_;
}

// Requires lock_, and releases it.
std::error_code PoolCore::refuse(std::error_code why) noexcept {
  ++rejected_;
  lock_.unlock();
  return why;
}

void PoolCore::run_in_caller(PoolItem& item) noexcept {
  ++submitted_;
  ++in_callers_;
  const std::uint64_t number = left_queue();
  lock_.unlock();
  Lap lap;
  const auto outcome = execute(item, number, lap);
  WakeChain wakes;
  lock_.lock();
  --in_callers_;
  count(outcome, lap);
  tell_if_counted(wakes);
  tell_if_still(wakes);
  tell_if_quiet(wakes);
  tell_if_gone(wakes);
  lock_.unlock();
  wakes.wake_all();
  if (item.job != nullptr) std::exchange(item.job, nullptr)->settle(outcome);
}

bool PoolCore::grow_queue(const PoolItem& item) noexcept {
  const Backlog::Demand demand = queue_.demand_for(item);
  lock_.unlock();
  Backlog::Memory memory = Backlog::make_memory(demand);
  lock_.lock();
  if (memory.empty()) return false;
  memory = queue_.add(std::move(memory));
  if (!memory.empty()) {
    lock_.unlock();
    memory = {};
    lock_.lock();
  }
  return true;
}

// Hands the item of the party that has been blocked longest to the queue, or to a worker that
// found the queue empty. False if nobody is blocked, or the item does not fit.
bool PoolCore::admit_one(PoolItem* instead_of_queue, WakeChain& wakes) noexcept {
  while (Waiter* submitter = blocked_.front()) {
    PoolItem& item = *static_cast<PoolItem*>(submitter->slot);
    const std::size_t weight = Backlog::weight_of(item);
    if (!has_room(weight)) return false;
    if (instead_of_queue != nullptr ? Backlog::terms_of(item) != nullptr : !queue_.can_push(item)) {
      return false;
    }
    blocked_.erase(*submitter);
    if (!detail::WaitList::try_claim(*submitter)) continue;
    --blocked_count_;
    if (instead_of_queue != nullptr) {
      book_weight(weight);
      *instead_of_queue = std::move(item);
    } else {
      book(item);
    }
    submitter->granted = true;
    wakes.add(*submitter);
    return true;
  }
  return false;
}

void PoolCore::admit_blocked(WakeChain& wakes) noexcept {
  do {
    if (group_ != nullptr) take_from_line();
  } while (!blocked_.empty() && has_place_at_host() && admit_one(nullptr, wakes));
}

// Takes an idle worker, to be woken by the caller. Requires that there is one.
Worker& PoolCore::call_idle() noexcept {
  ++waking_;
  return options_.wake_order == WakeOrder::lifo ? idle_.pop() : idle_.pop_bottom();
}

}  // namespace weft::pool
