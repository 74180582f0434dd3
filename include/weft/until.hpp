// Limits how long calls wait.
#pragma once

#include <stop_token>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/durations.hpp>
#include <weft/error.hpp>

namespace weft {

// Limits a wait by a deadline, a stop request, both, or nothing. Almost every function that waits
// has a version with a limit, but some, such as blocking() and Once::call(), do not:
//
//   channel.receive_until(value, Deadline::after(10ms));
//   mutex.try_lock_until(token);
//   stream.read_some(buffer, {Deadline::after(1s), token});
//
//   task.wait_until(50ms);
//
// An Until ends only waits: after its deadline or a stop request, a call that can finish without a
// wait still succeeds; any other call fails at once. A duration is measured from the construction
// of the Until. Use Until only as a parameter type. It stores a stop_token passed as an rvalue,
// such as source.get_token(). It stores only the address of an lvalue, which must outlive the call.
// Context: plain value.
class Until {
 public:
  // Makes a limit that never ends the wait.
  Until() noexcept = default;
  // Returns a limit that never ends the wait, not even at the end of the caller's context.
  [[nodiscard]] static Until never() noexcept { return {}; }
  // Returns the limit of the caller's context (context.hpp), or never() if there is none. The limit
  // must not outlive the context. Most functions that return an error use this limit by default;
  // FiberPool::submit() and functions whose names end in _for do not.
  // Context: fibers and plain threads; does not park.
  [[nodiscard]] static Until ambient() noexcept;
  // Makes a limit that ends the wait at a deadline, at a time point, after a duration, or upon a
  // stop request.
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

  // Returns the deadline, or Deadline::never() if there is none.
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  // Returns the stop token, or null if there is none.
  [[nodiscard]] const std::stop_token* token() const noexcept {
    if (token_ != nullptr) return token_;
    return held_.stop_possible() ? &held_ : nullptr;
  }
  // Returns a copy whose deadline is the earlier of deadline() and `other`.
  [[nodiscard]] Until but_before(Deadline other) const noexcept {
    Until earlier = *this;
    if (other < deadline_) earlier.deadline_ = other;
    return earlier;
  }

  // Returns whether the token, if there is one, reports a stop request.
  [[nodiscard]] bool stop_requested() const noexcept {
    return token_ != nullptr ? token_->stop_requested() : held_.stop_requested();
  }
  // Returns whether there is a token whose source has requested or can still request a stop.
  [[nodiscard]] bool can_be_stopped() const noexcept {
    return token_ != nullptr ? token_->stop_possible() : held_.stop_possible();
  }
  // Returns whether this limit can never end a wait.
  [[nodiscard]] bool is_never() const noexcept { return deadline_.is_never() && !can_be_stopped(); }
  // Returns why this limit ended a wait. A passed deadline takes precedence, as in a Context.
  [[nodiscard]] Errc reason() const noexcept {
    return deadline_.passed() ? Errc::timed_out : Errc::cancelled;
  }
  // Returns whether the deadline has passed or a stop has been requested.
  [[nodiscard]] bool is_over() const noexcept { return stop_requested() || deadline_.passed(); }

 private:
  Deadline deadline_ = Deadline::never();
  const std::stop_token* token_ = nullptr;
  std::stop_token held_;
};

}  // namespace weft
