// Scopes of work that can be cancelled.
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

// The state that a Context shares with its children, its timer and the fibers that carry it. The
// core records whether and why the context is cancelled, its values, and its parent's core.
// Invariants
//   I1  The caller that changes clock_state_ from `none` to `setting` writes clock_. The caller
//       that changes it from `set` to `ended` reads clock_. Not asserted, because no field records
//       which caller made which change.
//   I2  Only the owning Context calls end(), once. Not asserted, because no field records it.
// Order
//   [clock]   set_clock() stores `set` (release) -> end() exchanges it for `ended` (acquire): end()
//             then sees clock_. If end() runs first, set_clock() sees `ended` and stops clock_.
//   [values]  add_value() pushes a value (release) -> find_value() and the destructor load values_
//             (acquire): they then see this value and all older values.
class ContextCore : public SharedContext {
 public:
  // Makes a core whose context ends at `deadline` or, if `parent` is not null, when `parent` ends.
  // Throws: std::bad_alloc.
  [[nodiscard]] static ContextShare make(ContextCore* parent, Deadline deadline);
  // Cancels the context, stops the timer, and stops following the parent. Only the owner calls it.
  void end() noexcept;

  // Cancels the context. Returns false if an earlier call or the deadline has already ended it.
  bool cancel(std::error_code error, std::exception_ptr cause) noexcept;
  [[nodiscard]] std::error_code error() noexcept;
  [[nodiscard]] std::exception_ptr cause() noexcept;
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  // Returns a token, which reports a stop at the deadline only if set_clock() was called.
  [[nodiscard]] const std::stop_token& token() const noexcept { return token_; }
  // Sets the timer for the deadline, unless it has already been set. Throws what call_at() throws.
  void set_clock();
  [[nodiscard]] const ContextCore* parent() const noexcept { return parent_; }

  void add_value(const void* key, std::shared_ptr<const void> value);
  // Returns the value that Context::get() returns for `key`.
  [[nodiscard]] const void* find_value(const void* key) const noexcept;

 protected:
  ContextCore(const Context& context, Destroy destroy, ContextCore* parent, Deadline deadline);
  ~ContextCore();
  // Takes the parent's share from this core, so that a loop can destroy cores without recursion.
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

// A key for values in contexts. The key's address identifies it, so keys should be static.
template <class T>
class ContextKey {
 public:
  ContextKey() noexcept = default;
  ContextKey(const ContextKey&) = delete;
  ContextKey& operator=(const ContextKey&) = delete;
};

// A scope of work, like Go's context.Context. A context ends when it is cancelled, at its deadline,
// or when its parent ends. A wait whose limit is a context ends when the context ends:
//
//   Context request(Deadline::after(100ms));
//   if (channel.receive_until(value, request) != ChannelStatus::ok) return request.status();
//
// Cancellation is permanent, and interrupts no running code. A context must outlive the calls that
// use it. Its children, and the fibers that carry it, may outlive it. When the context ends, these
// children and fibers are cancelled, but can still read its values.
// Context: fibers and plain threads, several at once; no call parks.
// Throws: std::bad_alloc; set() also throws what moving the value throws.
// Ordering: cancel() synchronizes with the return of every wait that it ends.
class Context {
 public:
  // Begins a scope without a parent.
  Context() : Context(nullptr, Deadline::never()) {}
  explicit Context(Deadline deadline) : Context(nullptr, deadline) {}
  // Begins a child of `parent`, or a scope without a parent if `parent` is null. A child ends when
  // its parent ends or `deadline` passes, whichever is earlier.
  explicit Context(const Context* parent, Deadline deadline = Deadline::never())
      : share_(detail::ContextCore::make(parent == nullptr ? nullptr : &parent->core_, deadline)),
        core_(static_cast<detail::ContextCore&>(*share_.core())) {}
  // Cancels the scope, which ends each wait that the scope or one of its children limits.
  ~Context() {
    if (share_) core_.end();
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Ends the scope and its children's scopes, and runs the callbacks registered with token().
  // Returns true if this call ended the scope.
  bool cancel() noexcept { return core_.cancel(Errc::cancelled, nullptr); }
  // Ends the scope with a reason, which cause() then returns.
  bool cancel(std::exception_ptr cause) noexcept {
    return core_.cancel(Errc::cancelled, std::move(cause));
  }

  // Returns whether the scope has ended.
  [[nodiscard]] bool is_over() const noexcept { return !status(); }
  // Returns Errc::cancelled or Errc::timed_out once the scope has ended, and no error before.
  [[nodiscard]] Result<void> status() const noexcept { return core_.error(); }
  // Returns the reason that was given to cancel() for this scope or an ancestor. Returns null if
  // there was no reason, or if the scope has not ended.
  [[nodiscard]] std::exception_ptr cause() const noexcept { return core_.cause(); }
  // Throws if the scope has ended.
  // Throws: cause(); if it is null, std::system_error with the error of status().
  void throw_if_over() const;

  // Returns the earlier of this context's deadline and its parent's deadline.
  [[nodiscard]] Deadline deadline() const noexcept { return core_.deadline(); }
  // Returns the deadline and the stop token as the limit of a wait.
  [[nodiscard]] Until until() const noexcept { return {core_.deadline(), core_.token()}; }
  // Converts the context to the limit of a wait, as until() does.
  operator Until() const noexcept { return until(); }  // NOLINT: a context is a limit.
  // Returns the context's stop token. If there is a deadline, the first call sets a timer for it.
  // Throws: whatever call_at() throws, for example Errc::no_runtime.
  [[nodiscard]] std::stop_token token() const {
    core_.set_clock();
    return core_.token();
  }

  // Returns whether this context is `other` or a descendant of `other`.
  [[nodiscard]] bool is_within(const Context& other) const noexcept;

  // Attaches a value. get() also returns it in child contexts and in fibers that carry the context.
  // A later call replaces the value. The old value stays alive, because get() may have returned it.
  // Ordering: the call synchronizes with each get() that returns its value or a later value.
  template <class T>
  void set(const ContextKey<T>& key, std::type_identity_t<T> value) {
    core_.add_value(&key, std::make_shared<const T>(std::move(value)));
  }
  // Searches this context, its parent, and so on. Returns the newest value for `key` in the first
  // context that has one. Returns null if no context has a value.
  template <class T>
  [[nodiscard]] const T* get(const ContextKey<T>& key) const noexcept {
    return static_cast<const T*>(core_.find_value(&key));
  }

  // Returns the internal core. Fibers that carry the context keep the core alive.
  [[nodiscard]] detail::ContextCore& core() const noexcept { return core_; }

 protected:
  // Constructs the context object that `core` contains; all fibers that share `core` use it.
  explicit Context(detail::ContextCore& core) noexcept : core_(core) {}

 private:
  const detail::ContextShare share_;  // Empty if this context is part of a core.
  detail::ContextCore& core_;
};

// While this object exists, `context` is the caller's context. The context limits the waits of the
// calls that docs/semantics.md lists, unless the caller passes another limit. Scopes nest. Fibers
// from spawn(), tasks from async(), loops, task groups, and calls of run() and blocking() inherit
// the context, because the caller usually waits for them. Fibers from go() do not inherit it.
// Context: the fiber or plain thread that creates the scope must destroy it; no call parks.
class ContextScope : private detail::ContextNode {
 public:
  // Sets the caller's context to `context`, which must outlive this object. The destructor restores
  // the previous context.
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

// Returns the caller's context as a limit, for calls that do not use it by default:
// `pool.run_until(this_fiber::until(), work)`.
// Context: fibers and plain threads; does not park.
[[nodiscard]] inline Until until() noexcept { return Until::ambient(); }

// While this object exists, the caller has no context, so waits in clean-up code do not end early.
// Context: as for ContextScope.
class NoCancel : private ContextScope {
 public:
  // Removes the caller's context; the destructor restores it.
  NoCancel() noexcept : ContextScope(nullptr) {}
};

}  // namespace this_fiber

// Calls `work` in a child of the caller's context that ends at `deadline`, and returns the result
// of `work`. If `work` takes a Context&, the call passes the child. The child ends with the call.
// Context: fibers and plain threads; parks only if `work` does.
// Throws: std::bad_alloc, and what `work` throws.
// Ordering: the same as for Context::cancel().
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
// Works like with_deadline(), with a deadline `duration` from now.
// Context, Throws: the same as for with_deadline().
template <class Rep, class Period, class F>
decltype(auto) with_timeout(std::chrono::duration<Rep, Period> duration, F&& work) {
  return with_deadline(Deadline::after(duration), work);
}

}  // namespace weft
