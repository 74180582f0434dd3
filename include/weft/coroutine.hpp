// Lets C++20 coroutines and fibers wait for each other.
//
// A coroutine of any type, on any thread, can await the events that fibers wait for:
//
//   Task<int> sum(weft::Channel<int>& numbers) {
//     int total = 0;
//     while (const auto number = co_await weft::async_receive(numbers)) total += *number;
//     co_return total;
//   }
//
// A fiber or a plain thread awaits a coroutine with weft::await(sum(numbers)).
//
// Each function whose name begins with async_ returns an object for co_await. Where a fiber would
// park, the coroutine is suspended, and its thread is not blocked. The coroutine continues in a new
// fiber of the current runtime, where it may make all calls that fibers may make. A call that can
// finish at once does not suspend the coroutine. A co_await that throws because it cannot wait does
// not change the channel or handle. A coroutine must not be destroyed while it waits in an async_
// call. A runtime's destructor waits for all coroutines that are waiting in async_ calls.
// Context: coroutines on any thread; calls suspend the coroutine and do not park.
// Throws: a co_await that has to wait throws what go() throws, for example Errc::no_runtime.
// Ordering: as for the corresponding calls that fibers make.
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/channel.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/join_state.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>

namespace weft {

namespace detail {

// These functions resume `coroutine` in a new fiber, when `one` is ready or at `deadline`. If
// resume_when_ready() completes the case itself, it sets `completed`. Otherwise the resumed
// coroutine must call conclude() on the case. A call that throws has no effect. Neither function is
// inlined, because a compiler may put an inlined function's variables into the coroutine's frame.
// Another thread may destroy this frame as soon as it can resume the coroutine.
void resume_when_ready(SelectCase& one, bool& completed, std::coroutine_handle<> coroutine,
                       WaitReason reason);
void resume_at(Deadline deadline, std::coroutine_handle<> coroutine);

// The awaiter for one case of a select. It lives in the coroutine's frame.
template <class Case>
class CaseAwaiter {
 public:
  [[nodiscard]] bool await_ready() noexcept {
    completed_ = select_case().attempt();
    return completed_;
  }
  void await_suspend(std::coroutine_handle<> coroutine) {
    resume_when_ready(case_, completed_, coroutine, reason_);
  }

 protected:
  template <class... Arguments>
  explicit CaseAwaiter(WaitReason reason, Arguments&&... arguments)
      : reason_(reason), case_(std::forward<Arguments>(arguments)...) {}

  // Passes the result to the case's handler. await_resume() calls this function.
  void conclude() {
    if (!completed_) (void)select_case().conclude();
    case_.handle();
  }

 private:
  [[nodiscard]] SelectCase& select_case() noexcept { return case_; }

  const WaitReason reason_;
  bool completed_ = false;
  Case case_;
};

template <class T>
class ReceiveAwaiter : public CaseAwaiter<ReceiveCase<T, Assign<T>>> {
 public:
  explicit ReceiveAwaiter(Channel<T>& channel)
      : CaseAwaiter<ReceiveCase<T, Assign<T>>>(WaitReason::channel_receive, &channel,
                                               Assign<T>{&value_}) {}
  std::optional<T> await_resume() {
    this->conclude();
    return std::move(value_);
  }

 private:
  std::optional<T> value_;
};

struct KeepStatus {
  ChannelStatus* out;
  void operator()(ChannelStatus status) const noexcept { *out = status; }
};

template <class T>
class SendAwaiter : public CaseAwaiter<SendCase<T, KeepStatus>> {
 public:
  SendAwaiter(Channel<T>& channel, T&& value)
      : CaseAwaiter<SendCase<T, KeepStatus>>(WaitReason::channel_send, &channel, std::move(value),
                                             KeepStatus{&status_}) {}
  ChannelStatus await_resume() {
    this->conclude();
    return status_;
  }

 private:
  ChannelStatus status_ = ChannelStatus::would_wait;
};

template <class T>
class JoinAwaiter : public CaseAwaiter<JoinCase<Nothing>> {
 public:
  explicit JoinAwaiter(JoinHandle<T>& handle)
      : CaseAwaiter(WaitReason::join, handle.core(), Nothing{}), handle_(handle) {}
  T await_resume() {
    conclude();
    return handle_.join();
  }

 private:
  JoinHandle<T>& handle_;
};

class SleepAwaiter {
 public:
  explicit SleepAwaiter(Deadline deadline) noexcept : deadline_(deadline) {}
  [[nodiscard]] bool await_ready() const noexcept { return deadline_.passed(); }
  void await_suspend(std::coroutine_handle<> coroutine) const { resume_at(deadline_, coroutine); }
  void await_resume() const noexcept {}

 private:
  const Deadline deadline_;
};

}  // namespace detail

// Receives a value, as Channel::receive() does.
template <class T>
[[nodiscard]] auto async_receive(Channel<T>& channel) {
  return detail::ReceiveAwaiter<T>(channel);
}
// Sends `value` as Channel::send() does, but the co_await returns ChannelStatus::ok or closed.
template <class T>
[[nodiscard]] auto async_send(Channel<T>& channel, std::type_identity_t<T> value) {
  return detail::SendAwaiter<T>(channel, std::move(value));
}
// Joins a fiber like JoinHandle::join(). Do not move or destroy the handle until the co_await ends.
template <class T>
[[nodiscard]] auto async_join(JoinHandle<T>& handle) {
  return detail::JoinAwaiter<T>(handle);
}
template <class T>
[[nodiscard]] auto async_join(JoinHandle<T>&& handle) {
  return detail::JoinAwaiter<T>(handle);
}
// Suspends the coroutine until the deadline, unless the deadline has passed.
// Throws: std::bad_alloc and what go() throws, if the co_await has to wait.
[[nodiscard]] inline auto async_sleep_until(Deadline deadline) {
  return detail::SleepAwaiter(deadline);
}
// Works like async_sleep_until(), with a deadline `duration` from now.
template <class Rep, class Period>
[[nodiscard]] auto async_sleep(std::chrono::duration<Rep, Period> duration) {
  return detail::SleepAwaiter(Deadline::after(duration));
}

namespace detail {

// Returns the awaiter that co_await makes from `awaitable`. The awaiter determines the result type.
template <class Awaitable>
decltype(auto) awaiter_of(Awaitable&& awaitable) {
  if constexpr (requires { static_cast<Awaitable&&>(awaitable).operator co_await(); }) {
    return static_cast<Awaitable&&>(awaitable).operator co_await();
  } else if constexpr (requires { operator co_await(static_cast<Awaitable&&>(awaitable)); }) {
    return operator co_await(static_cast<Awaitable&&>(awaitable));
  } else {
    return static_cast<Awaitable&&>(awaitable);
  }
}
template <class Awaitable>
using AwaitResult = decltype(awaiter_of(std::declval<Awaitable>()).await_resume());

// A promise may not have both return_void and return_value.
template <class T>
struct DriverOutcome {
  JoinState<T>& state;
  void return_value(T&& value) noexcept {
    auto give = [&value]() -> T { return static_cast<T&&>(value); };
    state.store_outcome(give);
  }
};
template <>
struct DriverOutcome<void> {
  JoinState<void>& state;
  void return_void() noexcept {
    auto nothing = [] {};
    state.store_outcome(nothing);
  }
};

// The coroutine that awaits on behalf of a caller. It frees its frame before it wakes the caller.
template <class T>
struct Driver {
  struct Finish {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[gnu::noinline]] void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      JoinState<T>& state = self.promise().state;
      self.destroy();
      state.finish();
    }
    void await_resume() const noexcept {}
  };
  struct promise_type : DriverOutcome<T> {
    template <class Awaitable>
    promise_type(Awaitable&& /*awaitable*/, JoinState<T>& outcome) noexcept
        : DriverOutcome<T>{outcome} {}
    [[nodiscard]] Driver get_return_object() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] Finish final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept {
      auto fail = []() -> T { WEFT_RETHROW; };
      this->state.store_outcome(fail);
    }
  };
};

template <class T, class Awaitable>
Driver<T> drive(Awaitable&& awaitable, JoinState<T>& /*state*/) {
  co_return co_await static_cast<Awaitable&&>(awaitable);
}

}  // namespace detail

// Waits for `awaitable`, which may be of any coroutine type or library, and returns its result.
// `awaitable` begins on the caller's stack.
// Context: fibers and plain threads; parks a fiber, or blocks a plain thread.
// Throws: what `awaitable` and moves of its result throw; std::bad_alloc before it begins.
// Ordering: the end of `awaitable` synchronizes with the return of await().
template <class Awaitable>
auto await(Awaitable&& awaitable) -> detail::AwaitResult<Awaitable> {
  using Result = detail::AwaitResult<Awaitable>;
  detail::JoinState<Result> state;
  detail::drive<Result>(std::forward<Awaitable>(awaitable), state);
  state.join();
  return state.take();
}

}  // namespace weft
