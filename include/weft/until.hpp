// How long a caller is ready to wait.
#pragma once

#include <chrono>
#include <stop_token>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft {

// An early end for a wait: a moment, a stop request, both, or nothing. Every call of
// the library that may park has a form that takes one, except blocking(), Once::call(), await()
// and await_future(), which nothing can end early:
//
//   channel.receive_until(value, Deadline::after(10ms));
//   mutex.try_lock_until(token);
//   stream.read_some(buffer, {Deadline::after(1s), token});
//
//   task.wait_until(50ms);
//
// A call that need not wait succeeds, whatever its Until says: a stop request, like a deadline
// that has passed, ends waits and nothing else. It is never used up: it ends each later wait too,
// and a duration counts from when the Until is made.
// A type for parameters: it holds a stop_token that is moved in, as source.get_token() is, and
// refers to any other, which must live as long as the call. A plain value.
class Until {
 public:
  // Nothing ends the wait but what is waited for.
  Until() noexcept = default;
  // A deadline, a moment, a duration from now, a stop token, or both: what comes first ends the
  // wait.
  Until(Deadline deadline) noexcept : deadline_(deadline) {}  // NOLINT: any limit is an Until.
  template <class Clock, class Duration>
  Until(std::chrono::time_point<Clock, Duration> time) noexcept  // NOLINT: as above.
      : deadline_(Deadline::at(time)) {}
  template <class Rep, class Period>
  Until(std::chrono::duration<Rep, Period> duration) noexcept  // NOLINT: as above.
      : deadline_(Deadline::after(duration)) {}
  Until(const std::stop_token& token) noexcept : token_(&token) {}  // NOLINT: as above.
  Until(Deadline deadline, const std::stop_token& token) noexcept
      : deadline_(deadline), token_(&token) {}
  Until(std::stop_token&& token) noexcept : held_(std::move(token)) {}  // NOLINT: as above.
  Until(Deadline deadline, std::stop_token&& token) noexcept
      : deadline_(deadline), held_(std::move(token)) {}

  // never() if only a stop request, or nothing, can end the wait.
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  // Null: no stop request is looked for.
  [[nodiscard]] const std::stop_token* token() const noexcept {
    if (token_ != nullptr) return token_;
    return held_.stop_possible() ? &held_ : nullptr;
  }
  // The same, but until `other` at the latest.
  [[nodiscard]] Until but_before(Deadline other) const noexcept {
    Until earlier = *this;
    if (other < deadline_) earlier.deadline_ = other;
    return earlier;
  }

  // Returns whether the token, if there is one, asks for the end by now. Never parks.
  [[nodiscard]] bool stop_requested() const noexcept {
    return token_ != nullptr ? token_->stop_requested() : held_.stop_requested();
  }
  // Returns whether there is a token that may still ask for the end.
  [[nodiscard]] bool can_be_stopped() const noexcept {
    return token_ != nullptr ? token_->stop_possible() : held_.stop_possible();
  }
  // Nothing can end the wait early.
  [[nodiscard]] bool is_never() const noexcept { return deadline_.is_never() && !can_be_stopped(); }
  // Why a wait that it has ended was ended. As of a Context: a deadline that has passed was first.
  [[nodiscard]] Errc error() const noexcept {
    return deadline_.passed() ? Errc::timed_out : Errc::cancelled;
  }
  // The deadline has passed, or stop has been requested.
  [[nodiscard]] bool is_over() const noexcept { return stop_requested() || deadline_.passed(); }

 private:
  Deadline deadline_ = Deadline::never();
  const std::stop_token* token_ = nullptr;
  std::stop_token held_;
};

}  // namespace weft
