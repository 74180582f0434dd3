// Scopes that can be cancelled.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/local_scope.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/error.hpp>
#include <weft/timer.hpp>
#include <weft/until.hpp>

namespace weft {

namespace detail {

// The state that a Context, its children and the clock share: whether and why it is cancelled.
class CancelState {
 public:
  // Throws std::bad_alloc: a stop source is allocated.
  explicit CancelState(Deadline deadline) : deadline_(deadline) {}
  // The first call decides, if the deadline has not; true for it.
  bool cancel(std::error_code error, std::exception_ptr cause) noexcept;
  [[nodiscard]] std::error_code error() noexcept;
  [[nodiscard]] std::exception_ptr cause() noexcept;
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  const Deadline deadline_;
  std::stop_source source_;
  SpinLock lock_;
  std::error_code error_ WEFT_GUARDED_BY(lock_);
  std::exception_ptr cause_ WEFT_GUARDED_BY(lock_);
};

}  // namespace detail

// Identifies a value that contexts carry, by its address: make it static.
template <class T>
class ContextKey {
 public:
  ContextKey() noexcept = default;
  ContextKey(const ContextKey&) = delete;
  ContextKey& operator=(const ContextKey&) = delete;
};

// Go's context.Context: a scope of work that ends when it is cancelled, when its deadline passes,
// or when its parent ends; whichever comes first. Waits observe it as an Until:
//
//   Context request(Deadline::after(100ms));
//   if (channel.receive_until(value, request) != ChannelStatus::ok) return request.error();
//
// Cancelling is sticky: every later wait in the scope ends too. It is cooperative: nothing that
// runs is interrupted. A context lives in a scope, longer than its children and the calls that
// observe it. All calls from fibers and plain threads, at the same time too, except set(). Calls
// park, throw and synchronize where they say so.
class Context {
 public:
  // A scope of its own, without a parent.
  Context() : Context(nullptr, Deadline::never()) {}
  explicit Context(Deadline deadline) : Context(nullptr, deadline) {}
  // A child, if `parent` is not null: cancelled when the parent is, and its deadline is no later.
  explicit Context(const Context* parent, Deadline deadline = Deadline::never());
  // Cancels, so that whatever still has a token() of this scope ends.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Ends the scope, and the scopes of the children. Returns true for the call that did it. Runs the
  // callbacks that have been registered with token(). Never parks. Children below children are
  // reached one call within another, at some hundred bytes of the caller's stack each.
  // Synchronizes with the return of every wait that it ends.
  bool cancel() noexcept { return state_->cancel(Errc::cancelled, nullptr); }
  // The same, with a reason that cause() returns.
  bool cancel(std::exception_ptr cause) noexcept {
    return state_->cancel(Errc::cancelled, std::move(cause));
  }

  // Returns whether the scope has ended.
  [[nodiscard]] bool is_over() const noexcept { return static_cast<bool>(error()); }
  // Empty while the scope goes on; Errc::cancelled or Errc::timed_out after.
  [[nodiscard]] std::error_code error() const noexcept;
  // The argument of cancel(), here or in a parent; null if there was none, or while it goes on.
  [[nodiscard]] std::exception_ptr cause() const noexcept { return state_->cause(); }
  // Throws cause(), or std::system_error with error(), if the scope has ended.
  void throw_if_over() const;

  // The parent's and the own one, whichever is earlier.
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  // For the library's waits.
  [[nodiscard]] Until until() const noexcept { return {deadline_, token_}; }
  // The same, so that a context is passed wherever a wait takes a limit.
  operator Until() const noexcept { return until(); }  // NOLINT: a context is a limit.
  // For everything else that takes a stop_token. With a deadline the first call sets a clock that
  // requests the stop then. Throws what call_at() throws, for example Errc::no_runtime.
  [[nodiscard]] std::stop_token token() const;

  // Returns whether this is `other`, or a descendant of it.
  [[nodiscard]] bool is_within(const Context& other) const noexcept;

  // Attaches a value, which children see too. By the scope's owner, before others know the context.
  template <class T>
  void set(const ContextKey<T>& key, std::type_identity_t<T> value) {
    values_.emplace_back(&key, std::make_shared<const T>(std::move(value)));
  }
  // The value set last, here or else in the nearest parent that has one; null if there is none.
  template <class T>
  [[nodiscard]] const T* get(const ContextKey<T>& key) const noexcept {
    return static_cast<const T*>(find(&key));
  }

 private:
  struct FollowParent {
    std::shared_ptr<detail::CancelState> parent;
    std::shared_ptr<detail::CancelState> child;
    void operator()() const noexcept { child->cancel(parent->error(), parent->cause()); }
  };

  [[nodiscard]] const void* find(const void* key) const noexcept;

  const Context* const parent_;
  const Deadline deadline_;
  const std::shared_ptr<detail::CancelState> state_;
  const std::stop_token token_;
  std::vector<std::pair<const void*, std::shared_ptr<const void>>> values_;
  detail::StopRegistration<FollowParent> follow_parent_;
  mutable detail::Atomic<bool> clock_is_set_{false};
  mutable DelayedCall clock_;  // The thread that has set the flag sets it, once.
};

// Makes `context` the calling fiber's own while this object lives, which is in one scope of that
// fiber. They nest. A fiber begins without one; tasks of a TaskGroup begin with the group's.
// Costs a few nanoseconds and no memory. On plain threads, too. Neither parks nor synchronizes.
class ContextScope : private detail::LocalScope {
 public:
  // By the fiber, or plain thread, whose context it becomes. Never parks. `context` must outlive
  // it. With its end the context of before is the caller's again; by the one that made it.
  explicit ContextScope(const Context& context) noexcept : ContextScope(&context) {}

  // Returns the caller's innermost context, or null. Call it from anywhere.
  [[nodiscard]] static const Context* current() noexcept;

 protected:
  explicit ContextScope(const Context* context) noexcept;

 private:
  const Context* const context_;
};

namespace this_fiber {

// The context that the caller works in; null if there is none. From anywhere; neither parks nor
// synchronizes.
[[nodiscard]] inline const Context* context() noexcept { return ContextScope::current(); }

// The same as a limit for waits: `channel.receive_until(value, this_fiber::until())`. From
// anywhere; neither parks nor synchronizes.
[[nodiscard]] inline Until until() noexcept {
  const Context* context = ContextScope::current();
  return context == nullptr ? Until() : context->until();
}

// While it lives, the caller has no context: what has to be done in any case, such as putting
// things in order, is not cut short. By the caller itself; neither parks nor synchronizes.
class NoCancel : private ContextScope {
 public:
  // Does the same as ContextScope, without a context. Never parks.
  NoCancel() noexcept : ContextScope(nullptr) {}
};

}  // namespace this_fiber

// Calls `work`, with or without a Context&, in a child of the caller's context that ends at the
// deadline, and returns what it returns. The scope is over when it returns. From fibers and plain
// threads; parks only as `work` does. Throws std::bad_alloc, and what `work` throws: a wait that
// the deadline ends says so in its own way. Synchronizes as Context::cancel() with the waits that
// it ends.
template <class F>
decltype(auto) with_deadline(Deadline deadline, F&& work) {
  Context context(this_fiber::context(), deadline);
  const ContextScope scope(context);
  if constexpr (std::invocable<F&, Context&>) {
    return std::invoke(work, context);
  } else {
    return std::invoke(work);
  }
}
// Does the same as with_deadline() with a deadline `duration` from now.
template <class Rep, class Period, class F>
decltype(auto) with_timeout(std::chrono::duration<Rep, Period> duration, F&& work) {
  return with_deadline(Deadline::after(duration), work);
}

}  // namespace weft
