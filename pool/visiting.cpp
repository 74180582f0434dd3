// Sub-pools: pools whose tasks run in the slots of another.
//
// A sub-pool has no fibers. Where another pool would start a worker, it asks its host to accept a
// visit: a task that runs the sub-pool's tasks, one after the other, in the slot in which it runs
// itself. So neither capacity can be exceeded. README.md tells the rest.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "pool/pool_core.hpp"
#include "pool/registry.hpp"

namespace weft::pool {

using detail::PoolItem;
using detail::Waiter;

namespace {

// Enters the first of these sub-pools that has not ended. Null if there is none.
Guest* enter_first(Guest* guest, PoolCore*& core) noexcept {
  while (guest != nullptr && (core = guest->enter()) == nullptr) guest = guest->next_guest;
  return guest;
}

}  // namespace

PoolCore* Guest::enter() noexcept {
  lock_.lock();
  PoolCore* const core = is_gone_ ? nullptr : &core_;
  if (core != nullptr) core->count_visitor();
  lock_.unlock();
  return core;
}

void Guest::detach() noexcept {
  lock_.lock();
  is_gone_ = true;
  lock_.unlock();
}

Visit* Visit::make(PoolCore& host, Guest& guest, Arrival arrival) noexcept {
  return new (std::nothrow) Visit(host, guest, arrival);
}

Visit::~Visit() {
  if (finished_ != nullptr) finished_->release_reference();
  if (visited_ != nullptr) visited_->leave();
  guest_.release();
}

// Under the host's lock, as the slot becomes free. A sub-pool that ends now waits for that lock.
detail::PoolJob::Settled Visit::settle(Outcome /*outcome*/) noexcept {
  WakeChain wakes;
  if (finished_ != nullptr) {
    const Settled settled = finished_->settle(outcome_);
    if (settled.is_last) return {.is_last = true};  // It is destroyed with this one.
    wakes.add_all(settled.waiters);
    finished_ = nullptr;
  }
  if (visited_ != nullptr) std::exchange(visited_, nullptr)->leave_silently(wakes);
  return {.waiters = wakes.take_all(), .is_unused = true};
}

bool Visit::invoke() noexcept {
  visited_ = guest_.enter();
  if (visited_ != nullptr) visited_->visit(arrival_, finished_, outcome_);
  return true;
}

void Visit::drop_callable() noexcept {
  if (is_off_) return;
  if (PoolCore* core = guest_.enter()) core->miss_visit(arrival_);
}

void PoolCore::count_visitor() noexcept {
  lock_.lock();
  ++present_;
  lock_.unlock();
}

// The life of a guest at its host's.

void PoolCore::move_in() {
  guest_ = new Guest(*this);
  host_->lock_.lock();
  guest_->next_guest = std::exchange(host_->first_guest_, guest_);
  if (guest_->next_guest != nullptr) guest_->next_guest->previous_guest = guest_;
  closed_ = closing_ = host_->closing_;
  host_->lock_.unlock();
}

// After the sub-pool was closed and joined.
void PoolCore::move_out() noexcept {
  guest_->detach();
  (void)join_until({});  // Those who have entered before leave; later visits find nobody.
  PoolItem unused;
  host_->lock_.lock();
  if (guest_->linked) {
    host_->blocked_.erase(*guest_);
    --host_->blocked_count_;
  }
  unused = std::move(guest_->visit);
  Guest* const next = guest_->next_guest;
  Guest* const previous = guest_->previous_guest;
  (previous == nullptr ? host_->first_guest_ : previous->next_guest) = next;
  if (next != nullptr) next->previous_guest = previous;
  host_->lock_.unlock();
  guest_->release();
}

void PoolCore::end_family() noexcept {
  if (guest_ != nullptr) move_out();
  if (first_guest_ == nullptr) return;
  std::fprintf(stderr, "weft: pool '%s' ends before its sub-pools\n", options_.name.c_str());
  std::abort();
}

// Takes lock_, with all sub-pools closed: one that is made meanwhile is closed from the start.
void PoolCore::close_guests_and_lock(Close mode) noexcept {
  lock_.lock();
  do {
    closing_ = true;
    // Who was entered keeps its place in the list until it is left.
    PoolCore* core = nullptr;
    Guest* guest = enter_first(first_guest_, core);
    while (guest != nullptr) {
      lock_.unlock();
      core->close(mode);
      PoolCore* const told = core;
      lock_.lock();
      guest = enter_first(guest->next_guest, core);
      lock_.unlock();
      told->leave();
      lock_.lock();
    }
  } while (!closing_);  // Opened again meanwhile, as sub-pools may have been since.
}

// Locks the hosts, outermost first, and then this pool.
void PoolCore::lock_with_hosts() noexcept {
  if (host_ != nullptr) host_->lock_with_hosts();
  lock_.lock();
}

void PoolCore::unlock_with_hosts() noexcept {
  lock_.unlock();
  if (host_ != nullptr) host_->unlock_with_hosts();
}

// By the host.

// Without any lock. Errc::full: there is no room. Then the guest stands in line, if it asked to
// block.
std::error_code PoolCore::accept_visit(PoolCore& guest, OnFull when_full) noexcept {
  Visit* const visit = Visit::make(*this, *guest.guest_, Arrival::called);
  if (visit == nullptr) return std::make_error_code(std::errc::not_enough_memory);
  PoolItem item(*visit);
  std::error_code error;
  lock_.lock();
  if (closing_) {
    lock_.unlock();
    error = Errc::closed;
  } else {
    const Verdict verdict = accept_if_room(item, error);
    if (verdict == Verdict::accepted) return {};
    if (verdict == Verdict::full) {
      lock_.unlock();
      error = Errc::full;
    }
  }
  visit->call_off();
  if (error == Errc::closed) {
    // What a sub-pool has accepted is still run, also if it is a host of this one that is closed.
    guest.lock_.lock();
    if (guest.has_accepted()) error = Errc::full;
    guest.lock_.unlock();
  }
  if (error == Errc::full && when_full == OnFull::block) return stand_in_line(guest);
  return error;
}

// Without any lock. There the guest gets what a blocked submitter gets: the next room, after those
// who came before. Errc::full, unless it could not be done.
std::error_code PoolCore::stand_in_line(PoolCore& guest) noexcept {
  Visit* const visit = Visit::make(*this, *guest.guest_, Arrival::from_line);
  if (visit == nullptr) return std::make_error_code(std::errc::not_enough_memory);
  PoolItem item(*visit);
  PoolItem unused;
  Guest& place = *guest.guest_;
  lock_.lock();
  while (!place.linked && !queue_.will_have_room_for(item)) {
    if (grow_queue(item)) continue;
    lock_.unlock();
    visit->call_off();
    return std::make_error_code(std::errc::not_enough_memory);
  }
  if (place.linked) {
    lock_.unlock();
    visit->call_off();
    return Errc::full;
  }
  unused = std::move(place.visit);
  place.visit = std::move(item);
  place.slot = &place.visit;
  blocked_.push_back(place);
  ++blocked_count_;
  guest.lock_.lock();
  ++guest.in_line_;
  guest.lock_.unlock();
  match_up();  // There may be room by now.
  return Errc::full;
}

// Requires lock_. Takes the sub-pools out of the line, and returns those that go on waiting there:
// all of them at a drain. Else they have nothing left to run, unless they were opened meanwhile.
detail::WaitList PoolCore::take_guests_in_line(Close mode) noexcept {
  detail::WaitList kept;
  Waiter* next = nullptr;
  for (Waiter* waiter = blocked_.first_for_room(); waiter != nullptr; waiter = next) {
    next = waiter->next;
    if (waiter->waker) continue;  // A submitter.
    auto& place = static_cast<Guest&>(*waiter);
    PoolCore& guest = place.core();
    blocked_.erase(place);
    guest.lock_.lock();
    const bool stays = mode == Close::drain || guest.has_accepted();
    if (!stays) --guest.in_line_;
    guest.lock_.unlock();
    if (stays) {
      kept.push_back(place);
    } else {
      --blocked_count_;
      static_cast<Visit*>(place.visit.job)->call_off();
    }
  }
  return kept;
}

// Requires lock_, and those of the hosts. Whether a visit may begin a task; after its first, it
// makes way for others.
bool PoolCore::spares_slot(Turn turn) const noexcept {
  if (paused_ || live_ > capacity_) return false;
  if (turn == Turn::later && !(queue_.empty() && blocked_.empty() && returning_.empty())) {
    return false;
  }
  return host_ == nullptr || host_->spares_slot(turn);
}

// By the guest.

// Requires lock_. Whether a task is queued, or sub-pools of its own stand in line for theirs.
bool PoolCore::has_accepted() noexcept {
  if (!queue_.empty()) return true;
  const Waiter* waiter = blocked_.first_for_room();
  while (waiter != nullptr && waiter->waker) waiter = waiter->next;  // A submitter.
  return waiter != nullptr;
}

bool PoolCore::may_wait_for_host() const noexcept {
  return queue_.startable() < waking_ || queue_.startable() - waking_ < options_.queue_capacity;
}
bool PoolCore::has_place_at_host() const noexcept {
  return host_ == nullptr || may_wait_for_host();
}
bool PoolCore::must_stand_in_line(std::size_t weight) const noexcept {
  return host_ != nullptr && in_line_ == 0 && live_ < capacity_ && has_room(weight);
}

// Requires lock_; releases it meanwhile. In place of start_worker(). Success: a visit was accepted,
// or, if `when_full` is to block, the sub-pool stands in line.
//
// If it was not accepted, others may have relied on it meanwhile; or one that stood in line has
// come in vain because this one was awaited. For them the sub-pool stands in line, again. A host
// that is being closed hears only of what has been accepted: parties that are blocked are told by
// its close.
std::error_code PoolCore::call_visit(OnFull when_full) noexcept {
  const std::error_code answer = ask_for_visit(when_full);
  for (std::error_code last = answer; answer; last = ask_for_visit(OnFull::block)) {
    if (last && last != Errc::full && last != Errc::closed) {
      run_stranded_items();
      break;
    }
    if (!lacks_worker() || (last == Errc::closed && !has_accepted())) break;
  }
  return answer == Errc::full && when_full == OnFull::block ? std::error_code() : answer;
}

// Errc::full also if the sub-pool stands in line.
std::error_code PoolCore::ask_for_visit(OnFull when_full) noexcept {
  ++live_;
  ++waking_;
  ++started_;
  lock_.unlock();
  const std::error_code error = host_->accept_visit(*this, when_full);
  lock_.lock();
  if (!error) return {};
  --started_;
  forget_awaited();
  return error;
}

// By a visit that the host has dropped; the caller is counted as present.
void PoolCore::miss_visit(Arrival arrival) noexcept {
  lock_.lock();
  if (arrival == Arrival::from_line) {
    --in_line_;
  } else {
    --started_;
    forget_awaited();
  }
  match_up();
  leave();
}

// In a slot of the host, on its fiber. The caller is counted as present, and stays so.
void PoolCore::visit(Arrival arrival, detail::PoolJob*& finished,
                     detail::PoolJob::Outcome& outcome) noexcept {
  PoolItem item;
  const Registration registration(*this, item);
  Worker self;
  lock_with_hosts();
  if (!begin_visit(arrival)) {
    unlock_with_hosts();
  } else {
    for (Turn turn = Turn::first; next_in_visit(self, item, turn, finished); turn = Turn::later) {
      self.outcome = execute(item, self.number, self.lap);
      lock_with_hosts();
      finished = end_in_visit(self, item);
    }
  }
  outcome = self.outcome;
  lock_.lock();
  match_up();
}

// Requires lock_ and those of the hosts; releases them meanwhile if the job's handle was dropped.
// Returns the job if it is to be settled.
detail::PoolJob* PoolCore::end_in_visit(Worker& self, PoolItem& item) noexcept {
  std::size_t weight = 1;
  detail::PoolJob* job = std::exchange(item.job, nullptr);
  if (job != nullptr && job->is_dropped()) {
    unlock_with_hosts();
    report_lost(*job, self);
    job->drop_outcome();
    lock_with_hosts();
  }
  if (job != nullptr && job->terms() != nullptr) {
    weight = job->terms()->weight;
    if (end_terms(*job->terms())) job = nullptr;
  }
  count(self.outcome, self.lap);
  free_slots(weight);
  return job;
}

// Requires lock_. Whether a worker is to be started or, for a sub-pool, a visit to be asked for
// that would not come in vain. A pause is no reason, except that parties are blocked though there
// is room.
bool PoolCore::lacks_worker() noexcept {
  if (host_ == nullptr) return must_grow(queue_.startable());
  if (in_line_ > 0) return false;
  const std::size_t blocked = first_blocked_fits() ? blocked_count_ : 0;
  if (paused_) return must_grow(blocked);
  const std::size_t queued = queue_.startable() > 0 && next_fits() ? queue_.startable() : 0;
  return must_grow(queued + blocked);
}

// Requires lock_. False also if nobody is blocked that has not given up.
bool PoolCore::first_blocked_fits() noexcept {
  blocked_.forget_gone();
  return next_blocked() != nullptr;
}

// Requires lock_. False if the visit has come in vain.
bool PoolCore::begin_visit(Arrival arrival) noexcept {
  if (arrival == Arrival::from_line) {
    --in_line_;
    if (live_ >= capacity_ || (closed_ && !has_accepted())) return false;
    ++live_;
    ++started_;
    return true;
  }
  if (doomed_ > 0) {
    --doomed_;
    return false;
  }
  --waking_;
  return true;
}

// Requires lock_ and those of the hosts, so that none of them can be paused meanwhile; releases
// them. False when the visit is over.
//
// `finished`: the job that the visit ran before. Its waiters are told now that its slot is used
// otherwise; or by the host, with whose slot this one becomes free.
bool PoolCore::next_in_visit(Worker& self, PoolItem& item, Turn turn,
                             detail::PoolJob*& finished) noexcept {
  WakeChain wakes;
  tell_if_counted(wakes);
  if (!returning_.empty()) return_slots(wakes);
  if (paused_) {
    // A visit that comes during a pause is a place for a party that is blocked.
    (void)admit_one(nullptr, wakes);
  } else if (!blocked_.empty()) {
    ++waking_;  // This one, which has a place.
    admit_blocked(wakes);
    --waking_;
  }
  const bool goes_on =
      live_ <= capacity_ && !paused_ && host_->spares_slot(turn) && take_item(item, 0, wakes);
  const bool calls_others = goes_on && lacks_worker();
  detail::PoolJob::Settled settled;
  detail::PoolJob* const ended = goes_on ? std::exchange(finished, nullptr) : nullptr;
  if (ended != nullptr) settled = ended->settle(self.outcome);
  wakes.add_all(settled.waiters);
  if (goes_on) {
    self.number = left_queue();
  } else {
    tell_if_still(wakes);
    tell_if_quiet(wakes);
    give_up_slot(wakes);
  }
  unlock_with_hosts();
  wakes.wake_all();
  if (!goes_on) return false;
  if (settled.is_last || settled.is_unused) ended->release_reference();
  if (calls_others) {
    lock_.lock();
    match_up();
  }
  return true;
}

}  // namespace weft::pool
