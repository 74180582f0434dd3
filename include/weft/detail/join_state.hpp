// Holds the state that a fiber shares with the handle that joins the fiber.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/detail/end_wait.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/local_node.hpp>
#include <weft/detail/small_block.hpp>
#include <weft/detail/waiter.hpp>

namespace weft::detail {

// Records whether the fiber has finished, and which callers are waiting for its end.
// Invariant: references_ counts the fiber and the handle; the last of the two to release its
// reference deletes the state.
// Order
//   [end]   finish() stores finished_ (release) -> done() and wait_until() load it (acquire): their
//           caller then sees the outcome.
//   [refs]  release_reference() decrements references_ (release) -> the last owner loads it
//           (acquire): that owner then sees all uses by the other owner.
class JoinCore {
 public:
  JoinCore() = default;
  JoinCore(const JoinCore&) = delete;
  JoinCore& operator=(const JoinCore&) = delete;

  [[nodiscard]] bool done() const noexcept { return finished_.load(acquire); }  // [end]
  // The fiber calls finish() once, after it has stored its outcome. done() may return true before
  // finish() unlocks lock_, so a sole owner must call join() before it destroys the state.
  void finish() noexcept {
    lock_.lock();
    finished_.store(true, release);  // [end]
    Waiter* joiners = waiters_.claim_all();
    lock_.unlock();
    wake_chain(joiners);
  }
  // Parks until the fiber calls finish(); returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept {
    lock_.lock();
    if (done()) {
      lock_.unlock();
      return true;
    }
    Waiter self;
    return wait_in_until(waiters_, lock_, self, WaitReason::join, until) == Claim::kNotifier;
  }
  void join() noexcept { (void)wait_until({}); }
  // Waits for finish(), and runs the fiber in place if possible. The caller must own a reference,
  // because finish() may still access the state when join_shared() returns.
  void join_shared() noexcept {
    if (done() || (run_in_place(this, WaitReason::join) && done())) return;
    join();
  }

  // A handle's destructor and assignment call this function. If an exception destroys the handle,
  // the fiber may wait for code that the exception skipped. A long wait is therefore reported.
  void join_at_end() noexcept {
    if (done()) return;
    // During unwinding, no fiber runs in place: that would delay the report of a long wait.
    if (std::uncaught_exceptions() == 0) return join_shared();
    wait_at_end("the destructor of a JoinHandle, run by an exception", this,
                [this](Deadline deadline) noexcept { return wait_until(deadline); });
  }

  // Returns the lock of the waiter list, for a select. While it is locked, done() does not change.
  [[nodiscard]] SpinLock& lock() noexcept WEFT_RETURNS_LOCK(lock_) { return lock_; }
  [[nodiscard]] WaitList& waiters() noexcept WEFT_REQUIRES(lock_) { return waiters_; }

  // Returns true for the last owner, which must delete the state.
  [[nodiscard]] bool release_reference() noexcept {
    // If one reference is left, it is the caller's, so the call need not decrement the count.
    return references_.load(acquire) == 1 || references_.fetch_sub(1, acq_rel) == 1;  // [refs]
  }

 private:
  SpinLock lock_;
  Atomic<bool> finished_{false};  // Set while lock_ is held.
  Atomic<std::uint32_t> references_{2};
  WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

// Holds the outcome of a fiber: its result, or the exception that ended it. A reference is stored
// as a pointer.
template <class T>
class JoinState : public JoinCore, public SmallBlock {
  struct Nothing {};
  using Stored = std::conditional_t<
      std::is_void_v<T>, Nothing,
      std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;

 public:
  // Calls `callable` and stores its result or exception. If callers wait, finish() must follow.
  template <class F>
  void store_outcome(F& callable) noexcept {
    WEFT_TRY {
      if constexpr (std::is_void_v<T>) {
        callable();
        value_.emplace();
      } else if constexpr (std::is_reference_v<T>) {
        auto&& result = callable();
        value_ = __builtin_addressof(result);
      } else {
        value_.emplace(callable());
      }
    }
    WEFT_CATCH_ALL { exception_ = std::current_exception(); }
  }

  // The fiber calls end_fiber() last, after the destruction of its callable. The fiber's FiberLocal
  // values are destroyed before a joiner continues. The fiber must not use the state afterwards.
  void end_fiber() noexcept {
    destroy_locals();
    finish();
    if (release_reference()) delete this;
  }

  // Moves the value out, or throws the stored exception. Requires an outcome.
  T take() {
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**value_);
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(*value_);
    }
  }

 private:
  std::optional<Stored> value_;
  std::exception_ptr exception_;
};

// Runs a joinable fiber's callable, and stores the outcome.
template <class Callable, class Result>
struct JoinableTask {
  using Shown = Callable;  // Dumps show this type instead of the wrapper.

  [[nodiscard]] const void* join_target() const noexcept { return state; }
  void operator()() {
    state->store_outcome(*callable);
    callable.reset();
    state->end_fiber();
  }

  JoinState<Result>* state;
  // The fiber destroys the callable and its captures before a joiner continues.
  std::optional<Callable> callable;
};

}  // namespace weft::detail
