// What a core does as one of several shards; see shards.hpp.
#include <utility>

#include "pool/pool_core.hpp"
#include "pool/shards.hpp"

namespace weft::pool {

using detail::PoolItem;
using detail::Waiter;

bool PoolCore::try_accept(PoolItem& item, std::error_code& error) noexcept {
  lock_.lock();
  if (accept_if_room(item, error) != Verdict::full) return true;
  lock_.unlock();
  return false;
}

void PoolCore::count_refusal() noexcept {
  lock_.lock();
  ++rejected_;
  lock_.unlock();
}

bool PoolCore::has_queued() noexcept {
  lock_.lock();
  const bool queued = !queue_.empty();
  lock_.unlock();
  return queued;
}

// Relaxed: a load that was true a moment ago is good enough to choose by.
std::size_t PoolCore::load_hint() const noexcept { return load_hint_.load(detail::relaxed); }
bool PoolCore::is_overloaded_hint() const noexcept {
  return load_hint() > capacity_hint_.load(detail::relaxed);
}

bool PoolCore::wait_quiet_and_unlock(const Until& until) noexcept {
  Waiter self;
  return detail::wait_in_until(quiet_waiters_, lock_, self, detail::WaitReason::pool_wait, until) ==
         detail::Claim::kNotifier;
}

// Requires lock_. Parties are blocked here, rather than in the line of all shards, with tasks that
// have a key.
bool PoolCore::would_accept(std::size_t weight) const noexcept {
  return has_room(weight) && blocked_.empty() && !closed_;
}

// Requires lock_.
bool PoolCore::somebody_waits_in_line() const noexcept { return group_->somebody_waits(); }

// Requires lock_. Moves the first party of the line of all shards to this one's, if it will be let
// in from there under the same hold of the lock.
void PoolCore::take_from_line() noexcept {
  if (!group_->somebody_waits() || !blocked_.empty() || closed_ || !has_room()) return;
  Waiter* const waiter = group_->next_in_line([this](const PoolItem& item) {
    return has_room(Backlog::weight_of(item)) && queue_.can_push(item);
  });
  if (waiter == nullptr) return;
  waiter->claim = nullptr;  // Its wait has been ended.
  blocked_.push_back(*waiter);
  ++blocked_count_;
}

void PoolCore::match_up_now() noexcept {
  lock_.lock();
  match_up();
}

void PoolCore::follow_size() noexcept {
  lock_.lock();
  set_capacity(group_->wanted_capacity_of(number_));
  match_up();
}

void PoolCore::follow_pause() noexcept {
  lock_.lock();
  if (!group_->pause_is_wanted()) return end_pause_and_match_up();
  if (!closed_) paused_ = true;
  lock_.unlock();
}

// A worker of its own is called, finds nothing here, and looks at the other shards. False if there
// is no free slot.
bool PoolCore::look_around() noexcept {
  WakeChain wakes;
  lock_.lock();
  const bool is_free = load_ < capacity_ && !paused_ && !closed_;
  look_again_ = true;  // Those who are awaited may have looked already.
  // One that finds nothing here: the others have tasks of this shard to take.
  if (is_free && waking_ <= queue_.startable()) {
    if (!idle_.empty()) {
      wakes.add(call_idle());
    } else if (live_ < limit_) {
      // Without fibers or memory the others go on with the workers they have.
      (void)start_worker();
    }
  }
  lock_.unlock();
  wakes.wake_all();
  return is_free;
}

// Without lock_, by a lender: it leaves a free slot behind, and may come back to a full shard.
void PoolCore::share_slot() noexcept {
  if (group_->sees_work_for(number_)) (void)look_around();
}
void PoolCore::share_load() noexcept {
  lock_.lock();
  note_load();
  lock_.unlock();
  if (is_overloaded_hint()) group_->feed_the_hungry(number_);
}

// By a worker that has found nothing to do, without lock_. True if there is something now.
bool PoolCore::look_for_work() noexcept {
  if (group_->somebody_waits()) match_up_now();
  return group_->find_work(number_);
}

// Without lock_, and without that of the other. Takes plain tasks for which there is no slot there,
// and a free one here. Under both locks, so that they are never in neither: who waits until all is
// quiet looks under all locks.
bool PoolCore::take_from(PoolCore& other) noexcept {
  lock_.lock();
  const bool can_hold = queue_.can_push({}) || grow_queue({});
  lock_.unlock();
  if (!can_hold) return false;
  std::size_t taken = 0;
  PoolCore& lower = number_ < other.number_ ? *this : other;
  PoolCore& upper = number_ < other.number_ ? other : *this;
  lower.lock_.lock();
  upper.lock_.lock();
  // A shard that is closed or paused may have been told before the other.
  const bool may_take = !closed_ && !paused_ && !other.closed_ && !other.paused_;
  while (may_take && load_ < capacity_ && other.load_ > other.capacity_ &&
         other.queue_.has_only_plain() && queue_.can_push({})) {
    PoolItem item;
    other.queue_.pop(item);
    --other.load_;
    --other.submitted_;
    queue_.push(std::move(item));
    ++load_;
    ++submitted_;
    ++taken;
  }
  note_load();
  lock_.unlock();
  if (taken == 0) {
    other.lock_.unlock();
    return false;
  }
  other.match_up();  // There is room for those who are blocked.
  match_up_now();    // One worker comes by itself, others may be needed.
  return true;
}

}  // namespace weft::pool
