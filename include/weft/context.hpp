// Scopes that can be cancelled.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/context_node.hpp>
#include <weft/detail/context_share.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/error.hpp>
#include <weft/result.hpp>
#include <weft/timer.hpp>
#include <weft/until.hpp>

namespace weft {

namespace detail {

// The state that a Context, its children, its timer and the fibers that carry it share: whether and
// why it is cancelled, its values, and its parent's state.
// Invariants
//   I1  The caller that moves clock_state_ from none to setting writes clock_. The caller that
//       moves it from set to ended reads clock_. Unchecked: a state does not record its mover.
//   I2  Only the Context that owns the core calls end(), and once.
//       Unchecked: a core does not record its owner.
// Order
//   [clock]   set_clock moves to set (acq_rel) -> end moves to ended (acq_rel): it sees clock_. If
//             end is first, set_clock fails (acquire), and stops the clock itself.
//   [values]  add_value pushes a value (release) -> find_value and the destructor load the newest
//             (acquire): they see it and the older ones.
class ContextCore : public SharedContext {
 public:
  // Makes a core that ends with `parent`, if that is not null, and at `deadline`.
  // Throws: std::bad_alloc.
  [[nodiscard]] static ContextShare make(ContextCore* parent, Deadline deadline);
  // The owner calls it: cancels the context, stops the timer, and no longer follows the parent.
  void end() noexcept;

  // Returns true for the call that ended the context: the first, unless the deadline had passed.
  bool cancel(std::error_code error, std::exception_ptr cause) noexcept;
  [[nodiscard]] std::error_code error() noexcept;
  [[nodiscard]] std::exception_ptr cause() noexcept;
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  // A stop is requested by a cancel(); at the deadline only after set_clock().
  [[nodiscard]] const std::stop_token& token() const noexcept { return token_; }
  // Sets the timer for the deadline, unless it has been set. Throws as call_at().
  void set_clock();
  [[nodiscard]] const ContextCore* parent() const noexcept { return parent_; }

  void add_value(const void* key, std::shared_ptr<const void> value);
  // Returns the newest value for the key, here or in the nearest parent with a value, or null.
  [[nodiscard]] const void* find_value(const void* key) const noexcept;

 protected:
  ContextCore(const Context& context, Destroy destroy, ContextCore* parent, Deadline deadline);
  ~ContextCore();
  // The parent's share: a chain of cores is destroyed by a loop, without recursion.
  [[nodiscard]] ContextShare take_parent() noexcept { return std::move(parent_share_); }

 private:
  enum class ClockState : std::uint8_t { none, setting, set, ended };
  struct Value {
    const void* key;
    std::shared_ptr<const void> value;
    const Value* older;
  };
  struct FollowParent {
    ContextCore* child;
    void operator()() const noexcept;
  };

  ContextShare parent_share_;
  ContextCore* const parent_;
  const Deadline deadline_;
  std::stop_source source_;
  const std::stop_token token_;
  SpinLock lock_;
  std::error_code error_ WEFT_GUARDED_BY(lock_);
  std::exception_ptr cause_ WEFT_GUARDED_BY(lock_);
  Atomic<const Value*> values_{nullptr};
  StopRegistration<FollowParent> follow_parent_;
  Atomic<ClockState> clock_state_{ClockState::none};
  DelayedCall clock_;
};

}  // namespace detail

// The address of a key identifies a value that contexts carry: make keys static.
template <class T>
class ContextKey {
 public:
  ContextKey() noexcept = default;
  ContextKey(const ContextKey&) = delete;
  ContextKey& operator=(const ContextKey&) = delete;
};

// Go's context.Context: a scope of work that ends at its cancellation, at its deadline, or with its
// parent. Waits observe it:
//
//   Context request(Deadline::after(100ms));
//   if (channel.receive_until(value, request) != ChannelStatus::ok) return request.status();
//
// Cancelling is permanent, and interrupts no running code. A context must outlive the calls that
// observe it. Its children and the fibers that carry it may outlive it: its end cancels them, and
// they keep its values.
// Context: fibers and plain threads, several at once; no call parks.
// Throws: std::bad_alloc.
// Ordering: cancel() synchronizes with the return of every wait that it ends.
class Context {
 public:
  // Begins a scope without a parent.
  Context() : Context(nullptr, Deadline::never()) {}
  explicit Context(Deadline deadline) : Context(nullptr, deadline) {}
  // Begins a child of `parent`, unless that is null. The child ends with the parent, at `deadline`
  // at the latest.
  explicit Context(const Context* parent, Deadline deadline = Deadline::never())
      : share_(detail::ContextCore::make(parent == nullptr ? nullptr : &parent->core_, deadline)),
        core_(static_cast<detail::ContextCore&>(*share_.core())) {}
  // Cancels the scope, so each wait with its token() ends.
  ~Context() {
    if (share_) core_.end();
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Ends the scope and its children's scopes, and runs the callbacks registered with token().
  // Returns true for the call that ended it.
  bool cancel() noexcept { return core_.cancel(Errc::cancelled, nullptr); }
  // Does the same with a reason, which cause() returns.
  bool cancel(std::exception_ptr cause) noexcept {
    return core_.cancel(Errc::cancelled, std::move(cause));
  }

  // Returns whether the scope has ended.
  [[nodiscard]] bool is_over() const noexcept { return !status(); }
  // Returns Errc::cancelled or Errc::timed_out once the scope has ended; until then no error.
  [[nodiscard]] Result<void> status() const noexcept { return core_.error(); }
  // Returns the argument of cancel(), here or in a parent; null if there was none, or before the
  // scope's end.
  [[nodiscard]] std::exception_ptr cause() const noexcept { return core_.cause(); }
  // Throws if the scope has ended.
  // Throws: cause(), or std::system_error with the error of status() if that is null.
  void throw_if_over() const;

  // Returns the earlier of the parent's deadline and its own.
  [[nodiscard]] Deadline deadline() const noexcept { return core_.deadline(); }
  // Returns the limit for waits of the library.
  [[nodiscard]] Until until() const noexcept { return {core_.deadline(), core_.token()}; }
  // Converts to the limit of a wait.
  operator Until() const noexcept { return until(); }  // NOLINT: a context is a limit.
  // Returns a token for users of stop tokens. With a deadline, the first call sets a timer.
  // Throws: as call_at(), for example Errc::no_runtime.
  [[nodiscard]] std::stop_token token() const {
    core_.set_clock();
    return core_.token();
  }

  // Returns whether this is `other` or a descendant of it.
  [[nodiscard]] bool is_within(const Context& other) const noexcept;

  // Attaches a value, which children and fibers that carry the context also see. The context also
  // keeps replaced values.
  // Ordering: the call synchronizes with each get() that returns its value or a later value.
  template <class T>
  void set(const ContextKey<T>& key, std::type_identity_t<T> value) {
    core_.add_value(&key, std::make_shared<const T>(std::move(value)));
  }
  // Returns the value that was set last, here or in the nearest parent with a value, or null.
  template <class T>
  [[nodiscard]] const T* get(const ContextKey<T>& key) const noexcept {
    return static_cast<const T*>(core_.find_value(&key));
  }

  // Returns the part that fibers which carry the context keep.
  [[nodiscard]] detail::ContextCore& core() const noexcept { return core_; }

 protected:
  // The context of the fibers that carry a core; a part of it.
  explicit Context(detail::ContextCore& core) noexcept : core_(core) {}

 private:
  const detail::ContextShare share_;  // Empty for a part of a core.
  detail::ContextCore& core_;
};

// While this object lives, `context` is the calling fiber's own. It limits each call that reports
// errors and is given no limit (docs/semantics.md). Scopes nest. Work that the caller joins has its
// context: fibers of spawn(), tasks of async(), calls of run() and blocking(). Fibers of go() have
// none.
// Context: the fiber or plain thread that makes it also destroys it; no call parks.
class ContextScope : private detail::ContextNode {
 public:
  // Makes `context`, which must outlive this object, the caller's; the destructor restores the
  // previous context.
  explicit ContextScope(const Context& context) noexcept : ContextNode(&context) {}

  // Returns the caller's innermost context, or null.
  [[nodiscard]] static const Context* current() noexcept { return ContextNode::current(); }

 protected:
  explicit ContextScope(const Context* context) noexcept : ContextNode(context) {}
};

namespace this_fiber {

// Returns the caller's context, or null.
// Context: fibers and plain threads; does not park.
[[nodiscard]] inline const Context* context() noexcept { return ContextScope::current(); }

// Returns the caller's context as a limit, for calls that do not take it by default:
// `pool.run_until(this_fiber::until(), work)`.
// Context: fibers and plain threads; does not park.
[[nodiscard]] inline Until until() noexcept { return Until::ambient(); }

// While it lives, the caller has no context, so that clean-up code is not interrupted.
// Context: as ContextScope.
class NoCancel : private ContextScope {
 public:
  // Does the same as ContextScope, without a context.
  NoCancel() noexcept : ContextScope(nullptr) {}
};

}  // namespace this_fiber

// Calls `work`, with or without a Context&, in a child of the caller's context that ends at
// `deadline`, and returns its result. The scope ends with the call.
// Context: fibers and plain threads; parks only if `work` does.
// Throws: std::bad_alloc, and what `work` throws.
// Ordering: as Context::cancel().
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
// Does the same as with_deadline(), with a deadline `duration` from now.
// Context, Throws: as with_deadline().
template <class Rep, class Period, class F>
decltype(auto) with_timeout(std::chrono::duration<Rep, Period> duration, F&& work) {
  return with_deadline(Deadline::after(duration), work);
}

}  // namespace weft
