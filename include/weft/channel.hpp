// Typed queues that connect fibers and threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/channel_status.hpp>
#include <weft/detail/channel_iterator.hpp>
#include <weft/detail/invariant.hpp>
#include <weft/detail/late_wait.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

namespace detail {
template <class T, class Handler>
class ReceiveCase;
template <class T, class Handler>
class SendCase;
}  // namespace detail

// A FIFO queue for up to `capacity` values. With a capacity of 0, each send waits for a receive.
// Any number of callers may send and receive. A value goes directly from a sender to a waiting
// receiver. close() works as in Go, but a send or close() on a closed channel does not panic.
// Context: fibers and plain threads; sends and receives park, except try_send() and try_receive().
// Throws: nothing, except from the constructor and receive_batch().
// Ordering: a send synchronizes with the receive of its value, and close() with a receive that
// reports closed. On an unbuffered channel the receive synchronizes with the return of the send.
// Fairness: FIFO among senders and among receivers.
// Invariants, under lock_. A select may wait both to send and to receive, but it must not receive
// its own value.
//   I1  Receivers wait only while the buffer is empty and no other caller is waiting to send.
//   I2  Senders wait only while the buffer is full and no other caller is waiting to receive.
//   I3  No caller waits once closed_ is set.
template <class T>
class Channel {
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "a channel moves values between stacks, which must not fail half way");

 public:
  // Creates a channel for at most `capacity` values; with 0, each send waits for a receiver.
  // Throws: std::invalid_argument for a capacity above the maximum, std::bad_alloc.
  explicit Channel(std::size_t capacity = 0) : capacity_(capacity) {
    if (capacity > kMaxCapacity) detail::refuse_capacity(capacity, kMaxCapacity);
    if (capacity > 0) buffer_ = new Place[capacity];
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // Destroys the buffered values. No caller may still be using the channel.
  ~Channel() {
    while (count_ > 0) drop_front();
    delete[] buffer_;
  }

  // Sends `value`; parks until there is room or a receiver. Returns false if the channel is closed;
  // `value` is then destroyed.
  [[nodiscard]] bool send(T value) WEFT_NOT_ANALYZED {
    lock_.lock();
    if (!closed_ && receivers_.empty() && count_ < capacity_) [[likely]] {
      WEFT_INVARIANT(senders_.empty(), "Channel I2: senders wait only while the buffer is full");
      push_back(std::move(value));
      lock_.unlock();
      detail::give_way_if_due();
      return true;
    }
    // The wait is inlined to save a return, because each return after a switch is mispredicted. The
    // waiter gets the address of this copy, so the argument itself can stay in a register.
    T kept(std::move(value));
    if (closed_ || !receivers_.empty()) {
      const ChannelStatus status = send_at_once(kept);
      if (status != ChannelStatus::would_wait) return status == ChannelStatus::ok;
    }
#if defined(WEFT_TELLS_LATE_WAITS)
    lock_.unlock();
    const detail::LateWait late_wait(detail::WaitReason::channel_send);
    lock_.lock();
    return send_or_wait(kept, {}) == ChannelStatus::ok;
#else
    detail::Waiter self;
    self.slot = __builtin_addressof(kept);
    detail::wait_in(senders_, lock_, self, detail::WaitReason::channel_send);
    return self.granted;
#endif
  }
  // Waits as send() does; `until` may end the wait. Moves from `value` only if the result is ok.
  [[nodiscard]] ChannelStatus send_until(T& value,
                                         const Until& until = Until::ambient()) WEFT_NOT_ANALYZED {
    lock_.lock();
    return send_or_wait(value, until);
  }
  // Sends a temporary, or a value that is passed with std::move().
  [[nodiscard]] ChannelStatus send_until(T&& value, const Until& until = Until::ambient()) {
    return send_until(value, until);
  }
  template <class Rep, class Period>
  [[nodiscard]] ChannelStatus send_for(T& value, std::chrono::duration<Rep, Period> duration) {
    return send_until(value, Deadline::after(duration));
  }
  template <class Rep, class Period>
  [[nodiscard]] ChannelStatus send_for(T&& value, std::chrono::duration<Rep, Period> duration) {
    return send_until(value, Deadline::after(duration));
  }
  // Sends without waiting. `value` is moved from only if the result is ok.
  [[nodiscard]] ChannelStatus try_send(T& value) WEFT_NOT_ANALYZED {
    lock_.lock();
    const ChannelStatus status = send_now(value);
    if (status == ChannelStatus::would_wait) lock_.unlock();
    return status;
  }
  // Sends a temporary, or a value that is passed with std::move().
  [[nodiscard]] ChannelStatus try_send(T&& value) { return try_send(value); }

  // Parks until it can return a value. Returns nothing if the channel is closed and drained.
  [[nodiscard]] std::optional<T> receive() WEFT_NOT_ANALYZED {
    // The turn is checked before lock(), because an atomic operation delays the loads after it.
    const bool turn_is_over = detail::is_turn_over();
    lock_.lock();
    // An available value is constructed directly in the return slot, or in a register if it is
    // small. No function receives the returned optional's address, because the compiler would then
    // store the optional in parts. Loading all of it would then stall for a dozen cycles.
    if (count_ > 0 && !turn_is_over) [[likely]]
      return take_front();
    if (detail::Waiter* sender = count_ > 0 ? nullptr : senders_.claim_front()) {
      lock_.unlock();
      const Granted granted{*sender};
      return std::optional<T>(std::in_place, std::move(*static_cast<T*>(sender->slot)));
    }
    std::optional<T> late = receive_rare();
    if (!late) return std::nullopt;
    return std::optional<T>(std::in_place, std::move(*late));
  }
  // Waits as receive() does, but `until` may end the wait. `value` is set only if the result is ok.
  [[nodiscard]] ChannelStatus receive_until(
      std::optional<T>& value, const Until& until = Until::ambient()) WEFT_NOT_ANALYZED {
    value.reset();
    lock_.lock();
    return receive_or_wait(value, until);
  }
  template <class Rep, class Period>
  [[nodiscard]] ChannelStatus receive_for(std::optional<T>& value,
                                          std::chrono::duration<Rep, Period> duration) {
    return receive_until(value, Deadline::after(duration));
  }
  // Waits for a value; appends it and buffered values, up to `most` in all. Returns how many it
  // appended: 0 if the channel is closed and drained, `until` ended the wait, or `most` is 0.
  // Throws: std::bad_alloc, before the call receives a value.
  [[nodiscard]] std::size_t receive_batch(std::vector<T>& values, std::size_t most,
                                          const Until& until = {}) {
    if (most == 0) return 0;
    const std::size_t needed = values.size() + (most <= capacity_ ? most : capacity_ + 1);
    // The capacity at least doubles, so that repeated calls do not copy the vector each time.
    const std::size_t doubled = 2 * values.capacity();
    if (needed > values.capacity()) values.reserve(needed > doubled ? needed : doubled);
    std::optional<T> value;
    if (receive_until(value, until) != ChannelStatus::ok) return 0;
    values.push_back(std::move(*value));
    return 1 + take_buffered(values, most - 1);
  }

  // The iterator of a range-based for loop, which ends when the channel is closed and drained.
  using Iterator = detail::ChannelIterator<T>;
  // Receives a loop's first value; parks. If several loops run, each value goes to one of them.
  [[nodiscard]] Iterator begin() { return Iterator(*this); }
  // Returns the sentinel. An iterator is equal to it once the channel is closed and drained.
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  // Receives without waiting. `value` is set only if the result is ok.
  [[nodiscard]] ChannelStatus try_receive(std::optional<T>& value) WEFT_NOT_ANALYZED {
    value.reset();
    lock_.lock();
    const ChannelStatus status = receive_now(value);
    if (status == ChannelStatus::would_wait) lock_.unlock();
    return status;
  }

  // Closes the channel and wakes all waiters. Callers can still receive the buffered values.
  // Returns true for the call that closed the channel, false for later calls. A caller whose send
  // or receive has reported closed may destroy the channel at once, if no other caller uses it.
  bool close() noexcept {
    lock_.lock();
    const bool closed_now = !std::exchange(closed_, true);
    // No caller can begin to wait now, so waiters can be claimed and woken in small batches. The
    // data of a batch is still in the cache when its waiters are woken. The last waiter of each
    // batch is woken only after the next batch has been claimed. A waiter that has not been woken
    // is still in a send or a receive, which keeps the channel alive.
    detail::Waiter* left_out = nullptr;
    while (detail::Waiter* some = claim_some_and_unlock()) {
      if (left_out != nullptr) detail::wake(left_out->waker);
      left_out = detail::wake_all_but_last(some);
      lock_.lock();
    }
    if (left_out != nullptr) detail::wake(left_out->waker);
    return closed_now;
  }

  // Returns the capacity that was passed to the constructor.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  // Returns the number of buffered values, which may be stale.
  [[nodiscard]] std::size_t size_hint() const noexcept {
    lock_.lock();
    const std::size_t count = count_;
    lock_.unlock();
    return count;
  }
  // Returns whether close() has been called; once true, it stays true.
  [[nodiscard]] bool is_closed_hint() const noexcept {
    lock_.lock();
    const bool closed = closed_;
    lock_.unlock();
    return closed;
  }

 private:
  template <class, class>
  friend class detail::ReceiveCase;
  template <class, class>
  friend class detail::SendCase;

  static constexpr std::size_t kMaxCapacity = SIZE_MAX / 2 / sizeof(T);
  union Place {
    Place() noexcept {}
    ~Place() {}
    T value;
  };

  // These functions return whether a send or a receive would complete without waiting.
  [[nodiscard]] bool can_send() noexcept WEFT_REQUIRES(lock_) {
    return closed_ || count_ < capacity_ || receivers_.has_claimable();
  }
  [[nodiscard]] bool can_receive() noexcept WEFT_REQUIRES(lock_) {
    return closed_ || count_ > 0 || senders_.has_claimable();
  }

  // The caller holds the lock; the call releases it unless the result is would_wait. The lock
  // analysis cannot express this, so it skips these functions and their callers.
  ChannelStatus send_now(T& value) WEFT_NOT_ANALYZED {
    if (closed_) return unlocked(ChannelStatus::closed);
    if (detail::Waiter* receiver = receivers_.claim_front()) {
      lock_.unlock();
      // No other thread can reach a claimed waiter, so the value is moved outside the lock.
      static_cast<std::optional<T>*>(receiver->slot)->emplace(std::move(value));
      return granted(*receiver);
    }
    if (count_ == capacity_) return ChannelStatus::would_wait;
    push_back(std::move(value));
    return unlocked(ChannelStatus::ok);
  }
  ChannelStatus receive_now(std::optional<T>& value) WEFT_NOT_ANALYZED {
    if (count_ > 0) {
      value.emplace(std::move(buffer_[head_].value));
      leave_front();
      return ChannelStatus::ok;
    }
    if (detail::Waiter* sender = senders_.claim_front()) {
      lock_.unlock();
      value.emplace(std::move(*static_cast<T*>(sender->slot)));
      return granted(*sender);
    }
    return closed_ ? unlocked(ChannelStatus::closed) : ChannelStatus::would_wait;
  }

  // The destructor notifies the sender, once the value has been constructed in the return slot.
  struct Granted {
    detail::Waiter& sender;
    ~Granted() {
      granted(sender);
      detail::give_way_if_due();
    }
  };
  struct LeaveFront {
    Channel& channel;
    ~LeaveFront() WEFT_NOT_ANALYZED { channel.leave_front(); }
  };
  // Removes and returns the first value, which must exist. Requires the lock, and releases it.
  [[gnu::always_inline]] std::optional<T> take_front() noexcept WEFT_NOT_ANALYZED {
    const LeaveFront leave{*this};
    return std::optional<T>(std::in_place, std::move(buffer_[head_].value));
  }
  // Frees the entry of the moved-out value, admits a waiting sender, and releases the lock.
  void leave_front() noexcept WEFT_NOT_ANALYZED {
    drop_front();
    detail::Waiter* sender = senders_.claim_front();
    if (sender == nullptr) return lock_.unlock();
    push_back(std::move(*static_cast<T*>(sender->slot)));
    lock_.unlock();
    granted(*sender);
  }
  // These functions require the lock, and release it unless they return would_wait.
  [[gnu::noinline]] ChannelStatus send_at_once(T& value) WEFT_NOT_ANALYZED {
    return given_way(send_now(value));
  }
  ChannelStatus send_or_wait(T& value, const Until& until) WEFT_NOT_ANALYZED {
    const ChannelStatus status = send_at_once(value);
    if (status != ChannelStatus::would_wait) return status;
    detail::Waiter self;
    self.slot = __builtin_addressof(value);
    return outcome(
        detail::wait_in_until(senders_, lock_, self, detail::WaitReason::channel_send, until),
        self);
  }
  // Called if there is no value and no waiting sender, or if it is time for the caller to yield.
  [[gnu::noinline]] std::optional<T> receive_rare() WEFT_NOT_ANALYZED {
    std::optional<T> value;
    WEFT_TELL_LATE_WAIT_LOCKED(count_ == 0 && !closed_, lock_, channel_receive);
    (void)receive_or_wait(value, {});
    return value;
  }
  ChannelStatus receive_or_wait(std::optional<T>& value, const Until& until) WEFT_NOT_ANALYZED {
    const ChannelStatus status = given_way(receive_now(value));
    if (status != ChannelStatus::would_wait) return status;
    WEFT_INVARIANT(!closed_, "Channel I3: no caller waits once it is closed");
    detail::Waiter self;
    self.slot = __builtin_addressof(value);
    return outcome(
        detail::wait_in_until(receivers_, lock_, self, detail::WaitReason::channel_receive, until),
        self);
  }

  // Lets other fibers run if the caller's turn is over, unless the caller is about to wait anyway.
  static ChannelStatus given_way(ChannelStatus status) noexcept {
    if (status != ChannelStatus::would_wait) detail::give_way_if_due();
    return status;
  }
  static ChannelStatus outcome(detail::Claim::Winner winner, const detail::Waiter& self) noexcept {
    if (winner == detail::Claim::kNotifier)
      return self.granted ? ChannelStatus::ok : ChannelStatus::closed;
    // If a stop was requested before the call, the caller has not parked and may be due to yield.
    return given_way(winner == detail::Claim::kClock ? ChannelStatus::timed_out
                                                     : ChannelStatus::stopped);
  }
  // Moves up to `most` values out of the buffer, and lets waiting senders refill the buffer.
  // `values` must have room for these values.
  std::size_t take_buffered(std::vector<T>& values, std::size_t most) {
    detail::Waiter* let_in = nullptr;
    detail::Waiter** last = &let_in;
    lock_.lock();
    const std::size_t taken = most < count_ ? most : count_;
    for (std::size_t i = 0; i < taken; ++i) {
      values.push_back(std::move(buffer_[head_].value));
      drop_front();
    }
    while (count_ < capacity_) {
      detail::Waiter* sender = senders_.claim_front();
      if (sender == nullptr) break;
      push_back(std::move(*static_cast<T*>(sender->slot)));
      sender->granted = true;
      *last = sender;
      last = &sender->next;
    }
    *last = nullptr;
    lock_.unlock();
    detail::wake_chain(let_in);
    return taken;
  }
  ChannelStatus unlocked(ChannelStatus status) noexcept WEFT_RELEASES(lock_) {
    lock_.unlock();
    return status;
  }
  [[nodiscard]] detail::Waiter* claim_some_and_unlock() noexcept WEFT_RELEASES(lock_) {
    detail::Waiter* some = receivers_.claim_all(64);
    if (some == nullptr) some = senders_.claim_all(64);
    lock_.unlock();
    return some;
  }
  static ChannelStatus granted(detail::Waiter& waiter) noexcept {
    waiter.granted = true;
    detail::wake(waiter.waker);
    return ChannelStatus::ok;
  }
  void push_back(T&& value) noexcept WEFT_REQUIRES(lock_) {
    WEFT_INVARIANT(receivers_.empty(), "Channel I1: receivers wait only while the buffer is empty");
    std::size_t index = head_ + count_;
    if (index >= capacity_) index -= capacity_;
    ::new (static_cast<void*>(__builtin_addressof(buffer_[index].value))) T(std::move(value));
    ++count_;
  }
  void drop_front() noexcept WEFT_REQUIRES(lock_) {
    buffer_[head_].value.~T();
    if (++head_ == capacity_) head_ = 0;
    --count_;
  }

  mutable detail::SpinLock lock_;
  bool closed_ WEFT_GUARDED_BY(lock_) = false;
  std::size_t head_ WEFT_GUARDED_BY(lock_) = 0;
  std::size_t count_ WEFT_GUARDED_BY(lock_) = 0;
  const std::size_t capacity_;
  Place* buffer_ = nullptr;  // Owned. A unique_ptr would take 1/4 of the time to compile a Channel.
  detail::WaitList senders_ WEFT_GUARDED_BY(lock_);
  detail::WaitList receivers_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft
