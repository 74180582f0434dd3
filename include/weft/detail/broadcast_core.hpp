// The part of Broadcast that does not depend on the type of its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <weft/channel_status.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

// What happens to a subscription when a full broadcast must drop the value that the subscription
// would receive next.
enum class OnLag : std::uint8_t {
  drop_oldest,   // It misses that value, and counts it.
  disconnect,    // It ends: each later receive reports the end.
  hold_senders,  // It misses nothing, because the send waits for it.
};

namespace detail {

// The values of a broadcast, one in each place. Calls for the same place are never concurrent.
class BroadcastPlaces {
 public:
  virtual ~BroadcastPlaces() = default;
  // Swaps `*value` with the content of the place.
  virtual void swap(std::size_t place, void* value) noexcept = 0;
  // Copies the content of the place to `*out`.
  virtual void copy(std::size_t place, void* out) noexcept = 0;
};

// The position of a subscription. It belongs to the caller that receives.
struct BroadcastReader {
  std::uint64_t next = 0;    // The number of the value to be received next.
  std::uint64_t missed = 0;  // Values, so far.
  OnLag on_lag = OnLag::drop_oldest;
  bool is_disconnected = false;
};

// Values are numbered from 1. Value n goes to place n % capacity, and stays until value n +
// capacity is sent. A receiver that is behind takes its value under the lock of its place only;
// lock_ is for senders and for callers that must wait. A send wakes the waiting receivers in
// batches, between which lock_ is free, so woken receivers can wait again. The lock of a place may
// be locked under lock_, but not lock_ under the lock of a place.
// Invariants
//   I1  Receivers wait only for value next_, or for an earlier value whose send is waking them.
//       Unchecked: the list is not searched.
//   I2  Senders wait only while the oldest value is unread, or the caller that has read it is about
//       to admit them. Unchecked: that caller is between two locks.
//   I3  unread of a place is the number of subscriptions that hold senders and have yet to receive
//       the value in the place. Unchecked: subscriptions are in no list.
class BroadcastCore {
 public:
  // Throws std::invalid_argument for a capacity of 0, and std::bad_alloc.
  BroadcastCore(std::size_t capacity, BroadcastPlaces& places);
  BroadcastCore(const BroadcastCore&) = delete;
  BroadcastCore& operator=(const BroadcastCore&) = delete;
  ~BroadcastCore();

  // Parks while a subscription holds senders. `*value` is swapped if the result is ok.
  [[nodiscard]] ChannelStatus send(void* value, const Until& until) noexcept;
  [[nodiscard]] ChannelStatus try_send(void* value) noexcept;
  bool close() noexcept;

  void subscribe(BroadcastReader& reader) noexcept;
  void unsubscribe(BroadcastReader& reader) noexcept;
  // Parks until there is a value, which is copied to `*out`.
  [[nodiscard]] ChannelStatus receive(BroadcastReader& reader, void* out,
                                      const Until& until) noexcept;
  [[nodiscard]] ChannelStatus try_receive(BroadcastReader& reader, void* out) noexcept;

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t subscriptions_hint() const noexcept;
  [[nodiscard]] bool is_closed_hint() const noexcept;

  // Accessors for a select, which holds the lock.
  [[nodiscard]] SpinLock& lock() noexcept WEFT_RETURNS_LOCK(lock_) { return lock_; }
  [[nodiscard]] WaitList& receivers() noexcept WEFT_REQUIRES(lock_) { return receivers_; }
  [[nodiscard]] WaitList& senders() noexcept WEFT_REQUIRES(lock_) { return senders_; }
  [[nodiscard]] bool can_send() noexcept WEFT_REQUIRES(lock_);
  [[nodiscard]] bool can_receive(const BroadcastReader& reader) const noexcept
      WEFT_REQUIRES(lock_) {
    return closed_ || reader.is_disconnected || reader.next != next_;
  }

 private:
  struct Place {
    SpinLock lock;
    // The number of the value in the place; 0 if there is none.
    std::uint64_t number WEFT_GUARDED_BY(lock) = 0;
    std::uint64_t unread WEFT_GUARDED_BY(lock) = 0;  // See I3.
  };

  [[nodiscard]] std::size_t place_of(std::uint64_t number) const noexcept {
    return static_cast<std::size_t>(number % capacity_);
  }
  // Returns whether the place of the next value is free.
  [[nodiscard]] bool has_room() noexcept WEFT_REQUIRES(lock_);
  // Requires room.
  void publish(void* value) noexcept WEFT_REQUIRES(lock_);
  // Sends the values of waiting senders, as long as there is room.
  void admit_senders() noexcept;
  [[nodiscard]] bool is_due(const Waiter* receiver) const noexcept WEFT_REQUIRES(lock_) {
    return receiver != nullptr && (closed_ || receiver->amount < next_);
  }
  void wake_receivers_and_unlock() noexcept WEFT_RELEASES(lock_);
  // Called without lock_; returns would_wait if the value has not been sent.
  [[nodiscard]] ChannelStatus take(BroadcastReader& reader, void* out) noexcept;
  // Handles a subscription that is behind by more than the capacity; returns false if it ends.
  [[nodiscard]] bool catch_up(BroadcastReader& reader) noexcept;

  const std::size_t capacity_;
  BroadcastPlaces& values_;
  const std::unique_ptr<Place[]> places_;
  mutable SpinLock lock_;
  bool closed_ WEFT_GUARDED_BY(lock_) = false;
  std::uint64_t next_ WEFT_GUARDED_BY(lock_) = 1;  // The number of the value to be sent next.
  std::size_t subscriptions_ WEFT_GUARDED_BY(lock_) = 0;
  // The number of subscriptions that hold senders.
  std::uint64_t holders_ WEFT_GUARDED_BY(lock_) = 0;
  // The `amount` of each waiter is the number that it waits for.
  WaitList receivers_ WEFT_GUARDED_BY(lock_);
  WaitList senders_ WEFT_GUARDED_BY(lock_);
};

}  // namespace detail

}  // namespace weft
