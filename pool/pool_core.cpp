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

PoolCore::PoolCore(PoolOptions options, PoolCore* host)
    : options_(std::move(options)),
      timings_(options_.timings ? std::make_unique<TimingBook>() : nullptr),
      host_(host),
      family_(host_ != nullptr ? host_->family_ : *this) {
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
    if (must_wait(item, weight)) return Verdict::full;
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
  Submitter self;
  self.slot = &item;
  self.waits_behind_key = queue_.would_be_held_up(item);
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
  // Those behind one that was too heavy may fit, and those who came later with its key.
  if (terms != nullptr) release_key(terms->key);
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
  const auto lacks_place = [&] {
    return queue_.would_be_held_up(item) && !has_place_behind_key(weight);
  };
  for (;;) {
    const bool is_enough = weight == 1 || has_room_beside(running_ + extra_running_, weight);
    const bool fits_behind_key =
        weight <= options_.queue_capacity || !queue_.would_be_held_up(item);
    if (queue_.empty() || !is_enough || !fits_behind_key) return refuse(Errc::full);
    const std::size_t most = std::min(weight == 1 ? 1 : 2 * weight, queue_.size());
    const bool can_push = queue_.can_replace_oldest(item);
    if (can_push && dropped_before.capacity() + 1 >= most) break;
    std::error_code error;
    if (can_push ? !reserve_unlocked(dropped_before, most, lock_) : !grow_queue(item)) {
      return refuse(std::make_error_code(std::errc::not_enough_memory));
    }
    if (accept_if_room(item, error) != Verdict::full) return error;
  }
  drop_oldest(dropped, lacks_place() ? Which::held_up : Which::of_all);
  while (weight > 1 && (!has_room(weight) || lacks_place())) {
    dropped_before.push_back(std::move(dropped));
    drop_oldest(dropped, lacks_place() ? Which::held_up : Which::of_all);
  }
  book(item);
  match_up();
  return {};
}

// Requires lock_.
void PoolCore::drop_oldest(PoolItem& dropped, Which which) noexcept {
  which == Which::held_up ? queue_.pop_oldest_held_up(dropped) : queue_.pop_oldest(dropped);
  load_ -= Backlog::weight_of(dropped);
  if (const auto* terms = Backlog::terms_of(dropped)) release_key(terms->key);
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
  Worker self;
  self.number = left_queue();
  lock_.unlock();
  self.outcome = execute(item, self.number, self.lap);
  WakeChain wakes;
  lock_.lock();
  if (item.job != nullptr) (void)end_job(*std::exchange(item.job, nullptr), self);
  --in_callers_;
  count(self.outcome, self.lap);
  wakes.add_all(self.told);
  tell_if_counted(wakes);
  tell_if_still(wakes);
  tell_if_quiet(wakes);
  tell_if_gone(wakes);
  lock_.unlock();
  wakes.wake_all();
  release_unused(self);
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
  while (Submitter* submitter = next_blocked()) {
    PoolItem& item = submitter->item();
    const std::size_t weight = Backlog::weight_of(item);
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

// The party that has been blocked longest of those whom no key keeps back, if its item fits now.
Submitter* PoolCore::next_blocked() noexcept {
  Submitter* first = blocked_.first_for_room();
  for (; first != nullptr && queue_.would_be_held_up(first->item());
       first = blocked_.first_for_room()) {
    blocked_.wait_behind_key(*first);
  }
  Submitter* const held_up = blocked_.first_behind_key();
  const auto weight_of = [](const Submitter& of) { return Backlog::weight_of(of.item()); };
  if (held_up != nullptr && has_place_behind_key(weight_of(*held_up)) &&
      (first == nullptr || held_up->amount < first->amount)) {
    first = held_up;
  }
  return first != nullptr && has_room(weight_of(*first)) ? first : nullptr;
}

void PoolCore::admit_blocked(WakeChain& wakes) noexcept {
  while (!blocked_.empty() && has_place_at_host() && admit_one(nullptr, wakes)) {
  }
}

// Takes an idle worker, to be woken by the caller. Requires that there is one.
Worker& PoolCore::call_idle() noexcept {
  ++waking_;
  return options_.wake_order == WakeOrder::lifo ? idle_.pop() : idle_.pop_bottom();
}

}  // namespace weft::pool
