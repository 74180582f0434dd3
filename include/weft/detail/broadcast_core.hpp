// Implements the part of Broadcast that does not depend on the type of the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <weft/channel_status.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

// Selects what a send does if a subscription has not received the oldest value in a full broadcast.
enum class OnLag : std::uint8_t {
  drop_oldest,   // The subscription misses the value, and counts the loss.
  disconnect,    // The subscription ends, and later calls to receive() report this.
  hold_senders,  // The send waits until the subscription has received the value.
};

namespace detail {

// Stores the values of a broadcast in an array; a place is an index into the array. Calls for the
// same place are never concurrent.
class BroadcastPlaces {
 public:
  virtual ~BroadcastPlaces() = default;
  // Swaps `*value` with the content of the place.
  virtual void swap(std::size_t place, void* value) noexcept = 0;
  // Copies the content of the place to `*out`.
  virtual void copy(std::size_t place, void* out) noexcept = 0;
};

// Records the position of a subscription. Only the receiving caller uses it.
struct BroadcastReader {
  std::uint64_t next = 0;    // The number of the next value.
  std::uint64_t missed = 0;  // The number of missed values.
  OnLag on_lag = OnLag::drop_oldest;
  bool is_disconnected = false;
};

// Values are numbered from 1. Value n is stored in place n % capacity until value n + capacity
// replaces it. A receiver usually locks only the place of its next value. Senders lock lock_. A
// send wakes receivers in batches. It unlocks lock_ for each batch, because woken receivers may
// need lock_ to wait again. A thread that holds lock_ may lock a place; a thread that holds the
// lock of a place must not lock lock_.
// Invariants
//   I1  Receivers wait only for value number next_, or for an earlier value whose sender is waking
//       them. Not asserted, because an assertion would have to search receivers_.
//   I2  Senders wait only while a subscription with OnLag::hold_senders has not read the oldest
//       value. Not asserted, because after the last such read, senders wait until they are woken.
//   I3  Place::unread is the number of subscriptions with OnLag::hold_senders that have not yet
//       received the value in the place. Not asserted, because subscriptions are in no list.
class BroadcastCore {
 public:
  // Throws std::bad_alloc, and std::invalid_argument if `capacity` is 0.
  BroadcastCore(std::size_t capacity, BroadcastPlaces& places);
  BroadcastCore(const BroadcastCore&) = delete;
  BroadcastCore& operator=(const BroadcastCore&) = delete;
  ~BroadcastCore();

  // Parks while a subscription makes senders wait. If send() returns ok, it has swapped `*value`
  // with the contents of a place in the buffer.
  [[nodiscard]] ChannelStatus send(void* value, const Until& until) noexcept;
  [[nodiscard]] ChannelStatus try_send(void* value) noexcept;
  bool close() noexcept;

  void subscribe(BroadcastReader& reader) noexcept;
  void unsubscribe(BroadcastReader& reader) noexcept;
  // Parks until there is a value, and copies that value to `*out`.
  [[nodiscard]] ChannelStatus receive(BroadcastReader& reader, void* out,
                                      const Until& until) noexcept;
  [[nodiscard]] ChannelStatus try_receive(BroadcastReader& reader, void* out) noexcept;

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t subscriptions_hint() const noexcept;
  [[nodiscard]] bool is_closed_hint() const noexcept;

  // A select calls these accessors. It calls can_send() and can_receive() while it holds the lock.
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
  // Returns whether the place for the next value is free.
  [[nodiscard]] bool has_room() noexcept WEFT_REQUIRES(lock_);
  // Stores `*value` as the next value by swapping it into place_of(next_). Requires has_room().
  void publish(void* value) noexcept WEFT_REQUIRES(lock_);
  // Sends the values of waiting senders, as long as there is room.
  void admit_senders() noexcept;
  [[nodiscard]] bool is_due(const Waiter* receiver) const noexcept WEFT_REQUIRES(lock_) {
    return receiver != nullptr && (closed_ || receiver->amount < next_);
  }
  void wake_receivers_and_unlock() noexcept WEFT_RELEASES(lock_);
  // Receives a value, usually without lock_. Returns would_wait if the value has not been sent.
  [[nodiscard]] ChannelStatus take(BroadcastReader& reader, void* out) noexcept;
  // Handles a subscription that lags by more than the capacity. Returns false if the lag ends the
  // subscription.
  [[nodiscard]] bool catch_up(BroadcastReader& reader) noexcept;

  const std::size_t capacity_;
  BroadcastPlaces& values_;
  const std::unique_ptr<Place[]> places_;
  mutable SpinLock lock_;
  bool closed_ WEFT_GUARDED_BY(lock_) = false;
  std::uint64_t next_ WEFT_GUARDED_BY(lock_) = 1;  // The number of the next value.
  std::size_t subscriptions_ WEFT_GUARDED_BY(lock_) = 0;
  // The number of subscriptions with OnLag::hold_senders.
  std::uint64_t holders_ WEFT_GUARDED_BY(lock_) = 0;
  // Waiter::amount is the number of the value that the waiter waits for.
  WaitList receivers_ WEFT_GUARDED_BY(lock_);
  WaitList senders_ WEFT_GUARDED_BY(lock_);
};

}  // namespace detail

}  // namespace weft
