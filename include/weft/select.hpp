// Waits for the first of several operations.
// Context: fibers and plain threads; select() and select_among() park; making a case does not park.
// Throws: exceptions from copying or moving the handler or the value of a send.
// Ordering: select() synchronizes as the chosen operation does.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <weft/channel.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/detail/status_case.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/go.hpp>

namespace weft {

namespace detail {

// Receives from `channel`; if `channel` is null, the case is never ready.
template <class T, class Handler>
class ReceiveCase final : public SelectCase {
 public:
  ReceiveCase(Channel<T>* channel, Handler handler)
      : SelectCase(channel == nullptr ? nullptr : &channel->lock_,
                   channel == nullptr ? nullptr : &channel->receivers_, std::addressof(value_)),
        channel_(channel),
        handler_(std::move(handler)) {}

  void handle() override { handler_(std::move(value_)); }

 private:
  bool attempt() noexcept override {
    return channel_->try_receive(value_) != ChannelStatus::would_wait;
  }
  // The select holds the channel's lock, but the compiler's lock analysis cannot detect this.
  bool is_ready() noexcept override WEFT_NOT_ANALYZED { return channel_->can_receive(); }
  // A wake completes the case: the value was transferred, or the channel is closed and drained.
  bool conclude() noexcept override { return true; }

  Channel<T>* const channel_;
  std::optional<T> value_;
  Handler handler_;
};

// Sends to `channel`; if `channel` is null, the case is never ready.
template <class T, class Handler>
class SendCase final : public StatusCase<Handler> {
 public:
  SendCase(Channel<T>* channel, T value, Handler handler)
      : StatusCase<Handler>(channel == nullptr ? nullptr : &channel->lock_,
                            channel == nullptr ? nullptr : &channel->senders_,
                            std::addressof(value_), std::move(handler)),
        channel_(channel),
        value_(std::move(value)) {}

 private:
  bool attempt() noexcept override { return this->note(channel_->try_send(value_)); }
  bool is_ready() noexcept override WEFT_NOT_ANALYZED { return channel_->can_send(); }

  Channel<T>* const channel_;
  T value_;
};

// Is ready once a fiber has ended.
template <class Handler>
class JoinCase final : public SelectCase {
 public:
  JoinCase(JoinCore* core, Handler handler)
      : SelectCase(core == nullptr ? nullptr : &core->lock(),
                   core == nullptr ? nullptr : &core->waiters()),
        core_(core),
        handler_(std::move(handler)) {}

  void handle() override { handler_(); }

 private:
  bool attempt() noexcept override { return core_->done(); }
  bool is_ready() noexcept override { return core_->done(); }
  bool conclude() noexcept override { return true; }

  JoinCore* const core_;
  Handler handler_;
};

// Is ready once a stop has been requested; a stop callback wakes the waiter in this case's list.
template <class Handler>
class StopCase final : public SelectCase {
 public:
  StopCase(std::stop_token token, Handler handler)
      : SelectCase(&own_lock_, &own_list_),
        token_(std::move(token)),
        handler_(std::move(handler)) {}

  void handle() override { handler_(); }

 private:
  struct Request {
    StopCase* self;
    void operator()() const noexcept {
      self->own_lock_.lock();
      Waiter* waiter = self->own_list_.claim_front();
      self->own_lock_.unlock();
      if (waiter != nullptr) wake(waiter->waker);
    }
  };

  void prepare() noexcept override { registration_.add(token_, Request{this}); }
  void dismiss() noexcept override { registration_.remove(); }
  bool attempt() noexcept override { return token_.stop_requested(); }
  bool is_ready() noexcept override { return token_.stop_requested(); }
  bool conclude() noexcept override { return true; }

  SpinLock own_lock_;
  WaitList own_list_ WEFT_GUARDED_BY(own_lock_);
  std::stop_token token_;
  Handler handler_;
  StopRegistration<Request> registration_;  // Destroyed first: it uses the lock and the list.
};

// Limits how long a select waits for a ready case: until a deadline, or not at all (otherwise()).
template <class Handler>
class SelectLimit {
 public:
  SelectLimit(Deadline deadline, Handler handler)
      : deadline_(deadline), handler_(std::move(handler)) {}
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  void handle() { handler_(); }

 private:
  Deadline deadline_;
  Handler handler_;
};

template <class T>
struct Assign {
  std::optional<T>* out;
  void operator()(std::optional<T> value) const { *out = std::move(value); }
};

template <class Case>
inline constexpr bool kCanBeReady = std::derived_from<std::remove_cvref_t<Case>, SelectCase>;

// Sorts the arguments of a select into cases and limits, and stores their positions.
template <std::size_t kCases>
struct SelectPlan {
  std::array<SelectCase*, kCases> cases{};
  std::array<std::size_t, kCases> positions{};
  std::size_t count = 0;
  Deadline deadline = Deadline::never();
  std::size_t limit_position = kNoCase;

  template <class Case>
  void add(Case& one, std::size_t position) {
    if constexpr (kCanBeReady<Case>) {
      cases[count] = &one;
      positions[count++] = position;
    } else if (one.deadline() < deadline || limit_position == kNoCase) {
      deadline = one.deadline();
      limit_position = position;
    }
  }
};

}  // namespace detail

// These functions make the cases of a select(). Create each case in the argument list of select(),
// which calls the handler of the chosen case. select() holds no lock while the handler runs, so the
// handler may do anything. A null channel disables its case, as a nil channel does in Go.

// Receives from `channel`. The handler takes a std::optional<T>, which is empty if the channel is
// closed and drained. The case of such a channel stays ready.
template <class T, std::invocable<std::optional<T>> Handler>
[[nodiscard]] auto on_receive(Channel<T>* channel, Handler handler) {
  return detail::ReceiveCase<T, Handler>(channel, std::move(handler));
}
template <class T, std::invocable<std::optional<T>> Handler>
[[nodiscard]] auto on_receive(Channel<T>& channel, Handler handler) {
  return detail::ReceiveCase<T, Handler>(&channel, std::move(handler));
}
template <class T>
[[nodiscard]] auto on_receive(Channel<T>& channel, std::optional<T>& out) {
  return detail::ReceiveCase<T, detail::Assign<T>>(&channel, {&out});
}

// Sends `value`, which the case holds; a value that is not sent is destroyed with the case. The
// handler takes no argument, or a ChannelStatus that is ok or closed.
template <class T, class Handler = detail::Nothing>
[[nodiscard]] auto on_send(Channel<T>* channel, std::type_identity_t<T> value,
                           Handler handler = {}) {
  return detail::SendCase<T, Handler>(channel, std::move(value), std::move(handler));
}
template <class T, class Handler = detail::Nothing>
[[nodiscard]] auto on_send(Channel<T>& channel, std::type_identity_t<T> value,
                           Handler handler = {}) {
  return detail::SendCase<T, Handler>(&channel, std::move(value), std::move(handler));
}

// Makes a case that is ready once the fiber has finished, so that join() does not park. The case of
// an empty handle is never ready.
template <class T, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_done(JoinHandle<T>& handle, Handler handler = {}) {
  return detail::JoinCase<Handler>(handle.core(), std::move(handler));
}

// Makes a case that is ready once a stop has been requested.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_stop(std::stop_token token, Handler handler = {}) {
  return detail::StopCase<Handler>(std::move(token), std::move(handler));
}

// Makes a case that is chosen at the deadline if no other case has been ready. If there are several
// on_timeout() cases, the earliest deadline applies.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_timeout(Deadline deadline, Handler handler = {}) {
  return detail::SelectLimit<Handler>(deadline, std::move(handler));
}
template <class Rep, class Period, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_timeout(std::chrono::duration<Rep, Period> duration, Handler handler = {}) {
  return detail::SelectLimit<Handler>(Deadline::after(duration), std::move(handler));
}
// Makes a case that is chosen if no other case is ready, so select() does not park. The case
// corresponds to Go's default.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto otherwise(Handler handler = {}) {
  return detail::SelectLimit<Handler>(Deadline::past(), std::move(handler));
}

// Parks until a case is ready, performs its operation and calls its handler. The choice among
// several ready cases is random and uniform; the other cases have no effect. If no case can ever be
// ready, the call parks forever. Up to 8 cases need no allocation.
//
//   select(on_receive(jobs, [&](std::optional<Job> job) { ... }),
//          on_send(results, result),
//          on_stop(token, [&] { running = false; }),
//          on_timeout(10ms, [&] { ... }));
//
// Returns: the position of the chosen case among the arguments.
// Throws: what the handler throws, and std::bad_alloc for more than 8 cases.
template <class... Cases>
std::size_t select(Cases&&... cases) {
  static_assert(sizeof...(cases) > 0, "a select needs cases");
  constexpr std::size_t kCases = (std::size_t{detail::kCanBeReady<Cases>} + ...);
  detail::SelectPlan<kCases> plan;
  std::size_t position = 0;
  (plan.add(cases, position++), ...);
  const std::size_t chosen = detail::select_one(plan.cases, plan.deadline);
  const std::size_t result =
      chosen == detail::kNoCase ? plan.limit_position : plan.positions[chosen];
  position = 0;
  ((position++ == result ? cases.handle() : void()), ...);
  return result;
}

// The base class of the cases that select_among() takes: all except on_timeout() and otherwise().
using SelectCase = detail::SelectCase;
inline constexpr std::size_t kNoCase = detail::kNoCase;
// Works like select(), for a number of cases that is known only at run time. A case may be in only
// one select at a time.
// Returns: the position in `cases`, or kNoCase if `until` ended the wait.
// Throws: whatever select() throws.
inline std::size_t select_among(std::span<SelectCase* const> cases,
                                const Until& until = Until::ambient()) {
  const std::size_t chosen = detail::select_one(cases, until);
  if (chosen != kNoCase) cases[chosen]->handle();
  return chosen;
}

// The overloads below exist only for their error messages.
template <class T, class Handler>
requires(!std::invocable<Handler, std::optional<T>> && !std::same_as<Handler, std::optional<T>>)
    detail::SelectLimit<detail::Nothing> on_receive(Channel<T>*, Handler) {
  static_assert(detail::kFits<Handler>,
                "weft::on_receive: the handler must take a std::optional<T>");
  return detail::SelectLimit<detail::Nothing>(Deadline::past(), {});
}
template <class T, class Handler>
requires(!std::invocable<Handler, std::optional<T>> && !std::same_as<Handler, std::optional<T>>)
    detail::SelectLimit<detail::Nothing> on_receive(Channel<T>&, Handler) {
  static_assert(detail::kFits<Handler>,
                "weft::on_receive: the handler must take a std::optional<T>");
  return detail::SelectLimit<detail::Nothing>(Deadline::past(), {});
}
template <class T, class Handler>
requires(!std::invocable<Handler>) detail::SelectLimit<detail::Nothing> on_done(JoinHandle<T>&,
                                                                                Handler) {
  static_assert(detail::kFits<Handler>, "weft::on_done: the handler must take no arguments");
  return detail::SelectLimit<detail::Nothing>(Deadline::past(), {});
}
template <class Handler>
requires(!std::invocable<Handler>) detail::SelectLimit<detail::Nothing> on_stop(std::stop_token,
                                                                                Handler) {
  static_assert(detail::kFits<Handler>, "weft::on_stop: the handler must take no arguments");
  return detail::SelectLimit<detail::Nothing>(Deadline::past(), {});
}
template <class Handler>
requires(!std::invocable<Handler>) detail::SelectLimit<detail::Nothing> on_timeout(Deadline,
                                                                                   Handler) {
  static_assert(detail::kFits<Handler>, "weft::on_timeout: the handler must take no arguments");
  return detail::SelectLimit<detail::Nothing>(Deadline::past(), {});
}
template <class Rep, class Period, class Handler>
requires(!std::invocable<Handler>) detail::SelectLimit<detail::Nothing> on_timeout(
    std::chrono::duration<Rep, Period>, Handler) {
  static_assert(detail::kFits<Handler>, "weft::on_timeout: the handler must take no arguments");
  return detail::SelectLimit<detail::Nothing>(Deadline::past(), {});
}
template <class Handler>
requires(!std::invocable<Handler>) detail::SelectLimit<detail::Nothing> otherwise(Handler) {
  static_assert(detail::kFits<Handler>, "weft::otherwise: the handler must take no arguments");
  return detail::SelectLimit<detail::Nothing>(Deadline::past(), {});
}

}  // namespace weft
