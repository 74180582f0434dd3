// Values that each subscriber sees.
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

// One to many: each Subscription sees each value that was sent since it was made, in the order of
// the sends. The last `capacity` values are kept. A subscription that falls behind by more does
// what its OnLag says: it misses values, it ends, or the senders wait for it.
//
//   Broadcast<Price> prices(64);
//   go([seen = prices.subscribe()]() mutable {
//     while (std::optional<Price> price = seen.receive()) show(*price);
//   });
//   prices.send(price);
//
// A send copies nothing for each subscription and wakes only receivers that wait, of which there
// may be thousands. Each receive copies the value. A T whose copies may throw, or of more than 64
// bytes, is kept in shared memory: std::shared_ptr<const Big> as T spares its copies, too. Any
// number of senders, fibers and plain threads, first come, first served. close() works as that of a
// Channel. Synchronizes: a send with each receive of its value, close() with a receive that reports
// the end, and the receive that makes room with the send that waited for it. It must outlive its
// subscriptions, and may be destroyed once every call has returned. Calls park and throw where they
// say so.
template <class T>
class Broadcast {
  static_assert(std::is_copy_constructible_v<T>, "each subscriber is given a copy");

 public:
  // Keeps `capacity` values. Throws std::invalid_argument for 0, and std::bad_alloc.
  explicit Broadcast(std::size_t capacity)
      : core_(capacity, values_), value_(std::make_unique<Value[]>(capacity)) {}
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;

  // Sees what is sent from now on. The broadcast must outlive it. Never parks.
  [[nodiscard]] Subscription<T> subscribe(OnLag on_lag = OnLag::drop_oldest) noexcept {
    return Subscription<T>(core_, on_lag);
  }

  // Parks while a subscription with OnLag::hold_senders has not received the oldest value. False if
  // the broadcast is closed. Throws std::bad_alloc for a T in shared memory.
  bool send(T value) { return send_until(std::move(value), {}) == ChannelStatus::ok; }
  // Does as send(), but `until` may end the wait. The value is gone in any case.
  [[nodiscard]] ChannelStatus send_until(T value, const Until& until) {
    Value kept = detail::make_shared_value<T>(std::move(value));
    return core_.send(std::addressof(kept), until);
  }
  // Does as send_until(), for `duration` at most.
  template <class Rep, class Period>
  [[nodiscard]] ChannelStatus send_for(T value, std::chrono::duration<Rep, Period> duration) {
    return send_until(std::move(value), Deadline::after(duration));
  }
  // Never parks: would_wait where send() would. Throws as send().
  [[nodiscard]] ChannelStatus try_send(T value) {
    Value kept = detail::make_shared_value<T>(std::move(value));
    return core_.try_send(std::addressof(kept));
  }

  // No more sends; each subscription can still receive what it has not seen. Wakes all that wait.
  // Never parks. Closing twice is allowed; true for the call that closed it.
  bool close() noexcept { return core_.close(); }

  // As the constructor was told. Never parks.
  [[nodiscard]] std::size_t capacity() const noexcept { return core_.capacity(); }
  // How many subscriptions there are; may be stale when it returns. Never parks.
  [[nodiscard]] std::size_t subscriptions_hint() noexcept { return core_.subscriptions_hint(); }
  // Whether close() has been called; once true, it stays so. Never parks.
  [[nodiscard]] bool is_closed_hint() noexcept { return core_.is_closed_hint(); }

  // For a select.
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
  const std::unique_ptr<Value[]> value_;  // The place of each value is of its index.
};

// What one subscriber has yet to see of a Broadcast. Its calls are made by one caller at a time, a
// fiber or a plain thread. Receives synchronize with the sends of their values, and park and throw
// where they say so.
template <class T>
class [[nodiscard]] Subscription {
 public:
  // While no call of `other` is under way; what is moved from can only be destroyed or assigned to.
  // Never parks.
  Subscription(Subscription&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), reader_(other.reader_) {}
  // Does as the destructor first, then as the constructor. Never parks.
  Subscription& operator=(Subscription&& other) noexcept {
    Subscription old(std::move(*this));
    core_ = std::exchange(other.core_, nullptr);
    reader_ = other.reader_;
    return *this;
  }
  // Lets senders go on that waited for it. Never parks.
  ~Subscription() {
    if (core_ != nullptr) core_->unsubscribe(reader_);
  }

  // Parks until there is a value that it has not seen. Empty when the broadcast is closed and
  // drained, or is_disconnected(). Throws what copying T throws; the value counts as seen then.
  [[nodiscard]] std::optional<T> receive() {
    std::optional<T> value;
    (void)receive_until(value, {});
    return value;
  }
  // Does as receive(), but `until` may end the wait. `value` is set exactly when the result is ok.
  [[nodiscard]] ChannelStatus receive_until(std::optional<T>& value, const Until& until) {
    return take(value, [&](void* out) noexcept { return core_->receive(reader_, out, until); });
  }
  // Does as receive_until(), for `duration` at most.
  template <class Rep, class Period>
  [[nodiscard]] ChannelStatus receive_for(std::optional<T>& value,
                                          std::chrono::duration<Rep, Period> duration) {
    return receive_until(value, Deadline::after(duration));
  }
  // Never parks. Throws as receive().
  [[nodiscard]] ChannelStatus try_receive(std::optional<T>& value) {
    return take(value, [&](void* out) noexcept { return core_->try_receive(reader_, out); });
  }

  // How many values it has missed because it fell behind. The number grows in the receive that
  // skips the values, so it is right when the next value is there. Never parks.
  [[nodiscard]] std::uint64_t missed() const noexcept { return reader_.missed; }
  // Whether a receive has found that it fell behind, with OnLag::disconnect. Never parks.
  [[nodiscard]] bool is_disconnected() const noexcept { return reader_.is_disconnected; }

  // For a select. Never parks.
  [[nodiscard]] detail::BroadcastCore& core() noexcept { return *core_; }
  // For a select. Never parks.
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
  // The select holds the lock, which it knows by a pointer.
  bool is_ready() noexcept override WEFT_NOT_ANALYZED {
    // A wait that follows is for this value.
    waiter().amount = subscription_.reader().next;
    return subscription_.core().can_receive(subscription_.reader());
  }
  bool conclude() noexcept override { return false; }  // It is there to be taken.

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

// Cases of a select(), which alone parks and synchronizes. Made by the caller of the select(),
// which is the only caller of the subscription meanwhile. The handler takes a std::optional<T>:
// empty when nothing will come any more, which makes the case ready from then on. Throws what
// moving `handler` throws.
template <class T, std::invocable<std::optional<T>> Handler>
[[nodiscard]] auto on_receive(Subscription<T>& subscription, Handler handler) {
  return detail::SubscriptionCase<T, Handler>(subscription, std::move(handler));
}
// A case that sends `value`, which is gone in any case. Made by the caller of the select(), which
// alone parks and synchronizes. The handler takes nothing, or a ChannelStatus: ok, or closed if the
// broadcast is. Throws as send(), and what moving `handler` throws.
template <class T, class Handler = detail::Nothing>
[[nodiscard]] auto on_send(Broadcast<T>& broadcast, std::type_identity_t<T> value,
                           Handler handler = {}) {
  return detail::BroadcastCase<T, Handler>(broadcast.core(), std::move(value), std::move(handler));
}

}  // namespace weft
