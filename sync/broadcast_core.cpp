// Rejected designs:
//   A list of values, in which each subscription refers to its next value: a receive takes no
//   lock. But a subscription that is never read keeps all later values, and skipping them takes a
//   walk.
//   A queue for each subscription: a send costs a copy and a lock for each subscription, even for
//   one that lags.
//   One lock for all places: each receive of each subscription would compete with the senders.
//   Receivers that wake the next receiver: the send returns sooner, but a slow receiver would
//   delay the receivers after it.
#include <memory>
#include <stdexcept>
#include <utility>
#include <weft/detail/broadcast_core.hpp>
#include <weft/detail/exceptions.hpp>

#include "base/panic.hpp"
#include "sync/misuse.hpp"

namespace weft::detail {

namespace {

// At most this many waiters are woken before the lock is taken again.
constexpr std::size_t kPortion = 64;

std::size_t checked_capacity(std::size_t capacity) {
  if (capacity > 0) return capacity;
  WEFT_THROW(std::invalid_argument("weft::Broadcast: capacity = 0; must be at least 1"));
}

ChannelStatus status_of(Claim::Winner winner) noexcept {
  return winner == Claim::kClock ? ChannelStatus::timed_out : ChannelStatus::stopped;
}

}  // namespace

BroadcastCore::BroadcastCore(std::size_t capacity, BroadcastPlaces& places)
    : capacity_(checked_capacity(capacity)),
      values_(places),
      places_(std::make_unique<Place[]>(capacity)) {}

BroadcastCore::~BroadcastCore() {
  const SpinGuard guard(lock_);
  WEFT_CHECK(subscriptions_ == 0,
             sync::of_object(this, "a Broadcast was destroyed before its subscriptions: %zu",
                             subscriptions_));
}

bool BroadcastCore::has_room() noexcept {
  Place& place = places_[place_of(next_)];
  const SpinGuard guard(place.lock);
  return place.unread == 0;
}

void BroadcastCore::publish(void* value) noexcept {
  const std::size_t index = place_of(next_);
  Place& place = places_[index];
  const SpinGuard guard(place.lock);
  values_.swap(index, value);
  place.number = next_++;
  place.unread = holders_;
}

bool BroadcastCore::can_send() noexcept {
  return closed_ || (!senders_.has_claimable() && has_room());
}

ChannelStatus BroadcastCore::try_send(void* value) noexcept {
  lock_.lock();
  if (!can_send()) {
    lock_.unlock();
    return ChannelStatus::would_wait;
  }
  if (closed_) {
    lock_.unlock();
    return ChannelStatus::closed;
  }
  publish(value);
  wake_receivers_and_unlock();
  return ChannelStatus::ok;
}

ChannelStatus BroadcastCore::send(void* value, const Until& until) noexcept {
  give_way_if_due();
  lock_.lock();
  if (closed_) {
    lock_.unlock();
    return ChannelStatus::closed;
  }
  if (can_send()) {
    publish(value);
    wake_receivers_and_unlock();
    return ChannelStatus::ok;
  }
  Waiter self;
  self.slot = value;
  const Claim::Winner winner =
      wait_in_until(senders_, lock_, self, WaitReason::channel_send, until);
  if (winner != Claim::kNotifier) return status_of(winner);
  return self.granted ? ChannelStatus::ok : ChannelStatus::closed;
}

void BroadcastCore::admit_senders() noexcept {
  Waiter* admitted = nullptr;
  Waiter** last = &admitted;
  lock_.lock();
  while (has_room()) {
    Waiter* sender = senders_.claim_front();
    if (sender == nullptr) break;
    publish(sender->slot);
    sender->granted = true;
    *last = sender;
    last = &sender->next;
  }
  *last = nullptr;
  wake_receivers_and_unlock();
  wake_chain(admitted);
}

void BroadcastCore::wake_receivers_and_unlock() noexcept {
  for (;;) {
    Waiter* some = nullptr;
    Waiter** last = &some;
    for (std::size_t i = 0; i < kPortion && is_due(receivers_.front()); ++i) {
      Waiter& receiver = *receivers_.front();
      receivers_.erase(receiver);
      if (!WaitList::try_claim(receiver)) continue;
      *last = &receiver;
      last = &receiver.next;
    }
    *last = nullptr;
    const bool has_more = is_due(receivers_.front());
    lock_.unlock();
    wake_chain(some);
    if (!has_more) return;
    lock_.lock();
  }
}

bool BroadcastCore::close() noexcept {
  lock_.lock();
  const bool closed_now = !std::exchange(closed_, true);
  Waiter* refused = senders_.claim_all();
  wake_receivers_and_unlock();
  wake_chain(refused);
  return closed_now;
}

void BroadcastCore::subscribe(BroadcastReader& reader) noexcept {
  const SpinGuard guard(lock_);
  reader.next = next_;
  ++subscriptions_;
  if (reader.on_lag == OnLag::hold_senders) ++holders_;
}

void BroadcastCore::unsubscribe(BroadcastReader& reader) noexcept {
  lock_.lock();
  const std::uint64_t end = next_;
  --subscriptions_;
  const bool holds = reader.on_lag == OnLag::hold_senders;
  if (holds) --holders_;
  lock_.unlock();
  if (!holds || reader.next == end) return;
  // The values stay in their places until they are counted as read here.
  for (std::uint64_t number = reader.next; number != end; ++number) {
    Place& place = places_[place_of(number)];
    const SpinGuard guard(place.lock);
    --place.unread;
  }
  admit_senders();
}

bool BroadcastCore::catch_up(BroadcastReader& reader) noexcept {
  if (reader.on_lag == OnLag::disconnect) {
    reader.is_disconnected = true;
    return false;
  }
  const SpinGuard guard(lock_);
  const std::uint64_t oldest = next_ - capacity_;
  reader.missed += oldest - reader.next;
  reader.next = oldest;
  return true;
}

ChannelStatus BroadcastCore::take(BroadcastReader& reader, void* out) noexcept {
  if (reader.is_disconnected) return ChannelStatus::closed;
  for (;;) {
    const std::size_t index = place_of(reader.next);
    Place& place = places_[index];
    place.lock.lock();
    if (place.number == reader.next) {
      values_.copy(index, out);
      const bool admits = reader.on_lag == OnLag::hold_senders && --place.unread == 0;
      place.lock.unlock();
      ++reader.next;
      // This was the last subscription to read the value, so a sender may be waiting for its place.
      if (admits) admit_senders();
      return ChannelStatus::ok;
    }
    const bool is_behind = place.number > reader.next;
    place.lock.unlock();
    if (!is_behind) return ChannelStatus::would_wait;
    if (!catch_up(reader)) return ChannelStatus::closed;
  }
}

ChannelStatus BroadcastCore::try_receive(BroadcastReader& reader, void* out) noexcept {
  for (;;) {
    const ChannelStatus status = take(reader, out);
    if (status != ChannelStatus::would_wait) return status;
    const SpinGuard guard(lock_);
    if (reader.next == next_) return closed_ ? ChannelStatus::closed : ChannelStatus::would_wait;
  }
}

ChannelStatus BroadcastCore::receive(BroadcastReader& reader, void* out,
                                     const Until& until) noexcept {
  give_way_if_due();
  for (;;) {
    const ChannelStatus status = take(reader, out);
    if (status != ChannelStatus::would_wait) return status;
    lock_.lock();
    if (reader.next != next_ || closed_) {
      const bool is_drained = reader.next == next_;
      lock_.unlock();
      if (is_drained) return ChannelStatus::closed;
      continue;
    }
    Waiter self;
    self.amount = reader.next;
    const Claim::Winner winner =
        wait_in_until(receivers_, lock_, self, WaitReason::channel_receive, until);
    if (winner != Claim::kNotifier) return status_of(winner);
  }
}

std::size_t BroadcastCore::subscriptions_hint() const noexcept {
  const SpinGuard guard(lock_);
  return subscriptions_;
}

bool BroadcastCore::is_closed_hint() const noexcept {
  const SpinGuard guard(lock_);
  return closed_;
}

}  // namespace weft::detail
