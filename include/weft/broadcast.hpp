// A queue from which each subscriber receives all values.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/channel_status.hpp>
#include <weft/deadline.hpp>
#include <weft/detail/broadcast_core.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/detail/shared_value.hpp>
#include <weft/detail/status_case.hpp>

namespace weft {

template <class T>
class Subscription;

// Each subscriber receives all values, in the order of the sends. The broadcast keeps the last
// `capacity` values. If a Subscription falls further behind, its OnLag determines whether the
// subscription misses values, ends, or makes senders wait.
//
//   Broadcast<Price> prices(64);
//   go([seen = prices.subscribe()]() mutable {
//     while (std::optional<Price> price = seen.receive()) show(*price);
//   });
//   (void)prices.send(price);
//
// A send copies nothing per subscription and wakes only waiting receivers; each receive copies the
// value. A T that is larger than 64 bytes, or whose copies or swaps may throw, is kept on the heap.
// With T = std::shared_ptr<const Big>, no Big is copied. close() works like Channel::close().
// Context: fibers and plain threads; send(), send_until() and send_for() park.
// Throws: sends throw what moving T throws, and std::bad_alloc for a T that is kept on the heap.
// Ordering: a send synchronizes with each receive of its value, and close() with a receive that
// reports the end. A receive that makes room synchronizes with the send that waited for the room.
// Lifetime: the broadcast must outlive its subscriptions and all calls.
// Fairness: FIFO among senders.
template <class T>
class Broadcast {
  static_assert(std::is_copy_constructible_v<T>, "each subscriber is given a copy");

 public:
  // Creates a broadcast that keeps `capacity` values.
  // Throws: std::invalid_argument if `capacity` is 0, and std::bad_alloc.
  explicit Broadcast(std::size_t capacity)
      : core_(capacity, values_), value_(std::make_unique<Value[]>(capacity)) {}
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;

  // Makes a subscription, which receives only values sent later and must not outlive the broadcast.
  [[nodiscard]] Subscription<T> subscribe(OnLag on_lag = OnLag::drop_oldest) noexcept {
    return Subscription<T>(core_, on_lag);
  }

  // Sends `value` to all subscriptions. Parks while the broadcast is full and a subscription with
  // OnLag::hold_senders has not received the oldest value. Returns false after close().
  [[nodiscard]] bool send(T value) { return send_until(std::move(value), {}) == ChannelStatus::ok; }
  // Waits as send() does, but `until` may end the wait. `value` is always moved from.
  [[nodiscard]] ChannelStatus send_until(T value, const Until& until) {
    Value kept = detail::make_shared_value<T>(std::move(value));
    return core_.send(std::addressof(kept), until);
  }
  template <class Rep, class Period>
  [[nodiscard]] ChannelStatus send_for(T value, std::chrono::duration<Rep, Period> duration) {
    return send_until(std::move(value), Deadline::after(duration));
  }
  // Sends without waiting; returns would_wait if send() would park.
  [[nodiscard]] ChannelStatus try_send(T value) {
    Value kept = detail::make_shared_value<T>(std::move(value));
    return core_.try_send(std::addressof(kept));
  }

  // Closes the broadcast and wakes all waiters. Subscriptions still receive the values that they
  // have not seen. Returns true if this call closed the broadcast, false if an earlier call did.
  bool close() noexcept { return core_.close(); }

  // Returns the capacity that was passed to the constructor.
  [[nodiscard]] std::size_t capacity() const noexcept { return core_.capacity(); }
  // Returns the number of subscriptions, which may be stale.
  [[nodiscard]] std::size_t subscriptions_hint() const noexcept {
    return core_.subscriptions_hint();
  }
  // Returns whether close() has been called; once true, it stays true.
  [[nodiscard]] bool is_closed_hint() const noexcept { return core_.is_closed_hint(); }

  // Returns the internal core, for use by select().
  [[nodiscard]] detail::BroadcastCore& core() noexcept { return core_; }

 private:
  using Value = detail::SharedValue<T>;
  class Values final : public detail::BroadcastPlaces {
   public:
    explicit Values(Broadcast& of) noexcept : of_(of) {}
    void swap(std::size_t place, void* value) noexcept override {
      std::swap(of_.value_[place], *static_cast<Value*>(value));
    }
    void copy(std::size_t place, void* out) noexcept override {
      *static_cast<Value*>(out) = of_.value_[place];
    }

   private:
    Broadcast& of_;
  };

  Values values_{*this};
  detail::BroadcastCore core_;
  const std::unique_ptr<Value[]> value_;  // The kept values, at their positions in the ring.
};

// Receives the values of a Broadcast for one subscriber.
// Context: fibers and plain threads, one caller at a time; all receives except try_receive() park.
// Throws: receives throw what copying T throws; the value then counts as seen.
// Ordering: a receive synchronizes as described for Broadcast.
template <class T>
class [[nodiscard]] Subscription {
 public:
  // Takes over `other`; no call may be using it. `other` may then only be assigned to or destroyed.
  Subscription(Subscription&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), reader_(other.reader_) {}
  // Takes over `other`, then ends the previous subscription of this object.
  Subscription& operator=(Subscription&& other) noexcept {
    Subscription old(std::move(*this));
    core_ = std::exchange(other.core_, nullptr);
    reader_ = other.reader_;
    return *this;
  }
  // Ends the subscription. Senders no longer wait for it.
  ~Subscription() {
    if (core_ != nullptr) core_->unsubscribe(reader_);
  }

  // Parks until there is an unseen value, and returns the value. Returns an empty optional if the
  // broadcast is closed and drained, or if is_disconnected() is true.
  [[nodiscard]] std::optional<T> receive() {
    std::optional<T> value;
    (void)receive_until(value, {});
    return value;
  }
  // Waits as receive() does, but `until` may end the wait. `value` is set only if the result is ok.
  [[nodiscard]] ChannelStatus receive_until(std::optional<T>& value, const Until& until) {
    return take(value, [&](void* out) noexcept { return core_->receive(reader_, out, until); });
  }
  template <class Rep, class Period>
  [[nodiscard]] ChannelStatus receive_for(std::optional<T>& value,
                                          std::chrono::duration<Rep, Period> duration) {
    return receive_until(value, Deadline::after(duration));
  }
  // Receives without waiting.
  [[nodiscard]] ChannelStatus try_receive(std::optional<T>& value) {
    return take(value, [&](void* out) noexcept { return core_->try_receive(reader_, out); });
  }

  // Returns how many values a subscription with OnLag::drop_oldest has missed. If a receive skips
  // values, it updates this number before it returns.
  [[nodiscard]] std::uint64_t missed() const noexcept { return reader_.missed; }
  // Returns whether a receive found that the subscription had fallen behind (OnLag::disconnect).
  [[nodiscard]] bool is_disconnected() const noexcept { return reader_.is_disconnected; }

  // Returns the internal core, for use by select().
  [[nodiscard]] detail::BroadcastCore& core() noexcept { return *core_; }
  // Returns the subscription's position in the core, for use by select().
  [[nodiscard]] detail::BroadcastReader& reader() noexcept { return reader_; }

 private:
  template <class>
  friend class Broadcast;

  Subscription(detail::BroadcastCore& core, OnLag on_lag) noexcept : core_(&core) {
    reader_.on_lag = on_lag;
    core.subscribe(reader_);
  }
  template <class Receive>
  ChannelStatus take(std::optional<T>& value, Receive receive) {
    value.reset();
    detail::SharedValue<T> kept;
    const ChannelStatus status = receive(std::addressof(kept));
    if (status == ChannelStatus::ok) value.emplace(*kept);
    return status;
  }

  detail::BroadcastCore* core_;  // Null after a move.
  detail::BroadcastReader reader_;
};

namespace detail {

template <class T, class Handler>
class SubscriptionCase final : public SelectCase {
 public:
  SubscriptionCase(Subscription<T>& subscription, Handler handler) WEFT_NOT_ANALYZED
      : SelectCase(&subscription.core().lock(), &subscription.core().receivers()),
        subscription_(subscription),
        handler_(std::move(handler)) {}

  void handle() override { handler_(value_ ? std::optional<T>(*value_) : std::nullopt); }

 private:
  bool attempt() noexcept override {
    return subscription_.core().try_receive(subscription_.reader(), &value_) !=
           ChannelStatus::would_wait;
  }
  // The select holds the lock; the lock analysis cannot detect this.
  bool is_ready() noexcept override WEFT_NOT_ANALYZED {
    // If the select must wait, it waits for the value with this number.
    waiter().amount = subscription_.reader().next;
    return subscription_.core().can_receive(subscription_.reader());
  }
  // Returns false, so that the select calls attempt() again; that call receives the value.
  bool conclude() noexcept override { return false; }

  Subscription<T>& subscription_;
  SharedValue<T> value_;
  Handler handler_;
};

template <class T, class Handler>
class BroadcastCase final : public StatusCase<Handler> {
 public:
  BroadcastCase(BroadcastCore& core, T value, Handler handler) WEFT_NOT_ANALYZED
      : StatusCase<Handler>(&core.lock(), &core.senders(), std::addressof(value_),
                            std::move(handler)),
        core_(core),
        value_(make_shared_value<T>(std::move(value))) {}

 private:
  bool attempt() noexcept override { return this->note(core_.try_send(&value_)); }
  bool is_ready() noexcept override WEFT_NOT_ANALYZED { return core_.can_send(); }

  BroadcastCore& core_;
  SharedValue<T> value_;
};

}  // namespace detail

// Returns a select case that receives a value. During the select, no other call may use the
// subscription. The handler takes a std::optional<T>, which is empty if no more values can arrive;
// the case then stays ready.
// Context, Throws: the same as for on_stop().
template <class T, std::invocable<std::optional<T>> Handler>
[[nodiscard]] auto on_receive(Subscription<T>& subscription, Handler handler) {
  return detail::SubscriptionCase<T, Handler>(subscription, std::move(handler));
}
// Returns a select case that sends `value`, which is always moved from. The handler takes no
// argument, or a ChannelStatus that is ok or closed.
// Context: as for on_stop().
// Throws: whatever Broadcast::send() throws, and what moving `handler` throws.
template <class T, class Handler = detail::Nothing>
[[nodiscard]] auto on_send(Broadcast<T>& broadcast, std::type_identity_t<T> value,
                           Handler handler = {}) {
  return detail::BroadcastCase<T, Handler>(broadcast.core(), std::move(value), std::move(handler));
}

}  // namespace weft
