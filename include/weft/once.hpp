// Runs a function once, for the first caller.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/detail/waiter.hpp>

namespace weft {

// Works like std::once_flag. The first caller runs the function that it passes; concurrent callers
// park until the function has finished. If the function throws, its caller receives the exception,
// and the caller that has waited longest runs its own function. No deadline or stop request can end
// a wait in call(). A call on the same Once from within the function deadlocks.
// Context: fibers and plain threads; call() parks, but done_hint() does not.
// Ordering: the end of the function synchronizes with the return of every call().
// Lifetime: a Once may be destroyed once every call() has returned.
// Invariant: running_ is set while some caller is running its function or is about to run it.
// Order
//   [done]  finish() stores done_ (release) -> done_hint() loads it (acquire): the caller of
//           done_hint() then sees the effects of the function.
class Once {
 public:
  Once() noexcept = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  // Runs function(arguments...), unless an earlier call() has finished without an exception.
  // Throws: what the function throws.
  template <class F, class... Arguments>
  requires std::invocable<F, Arguments...>
  void call(F&& function, Arguments&&... arguments) {
    if (done_hint() || !begin()) return;
    Attempt attempt{this};
    std::invoke(std::forward<F>(function), std::forward<Arguments>(arguments)...);
    std::exchange(attempt.once, nullptr)->finish();
  }
  // Returns whether the function has finished. If so, the caller sees the function's effects.
  [[nodiscard]] bool done_hint() const noexcept { return done_.load(detail::acquire); }  // [done]

 private:
  struct Attempt {
    Once* once;
    ~Attempt() {
      if (once != nullptr) once->pass_on();
    }
  };

  // Returns true if the caller must run its function, or false if a function has already run.
  [[nodiscard]] bool begin() noexcept;
  void finish() noexcept;
  void pass_on() noexcept;

  detail::Atomic<bool> done_{false};  // Written under the lock, and read without a lock.
  detail::SpinLock lock_;
  bool running_ WEFT_GUARDED_BY(lock_) = false;
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

// Calls once.call() with the syntax of std::call_once.
// Context: as for Once::call().
// Throws: what the function throws.
template <class F, class... Arguments>
requires std::invocable<F, Arguments...>
void call_once(Once& once, F&& function, Arguments&&... arguments) {
  once.call(std::forward<F>(function), std::forward<Arguments>(arguments)...);
}

// Holds a value that is created on first use, for example:
//
//   weft::OnceValue settings([] { return read_settings(); });
//   settings->port;
//
// If creating the value throws, the caller receives the exception, and the next caller tries again.
// Context: fibers and plain threads; a call parks while another caller creates the value.
// Throws: whatever the creation of the value throws.
// Ordering: the creation of the value synchronizes with each call that returns the value.
// Lifetime: a OnceValue may be destroyed once every call has returned.
template <std::invocable F>
class OnceValue {
 public:
  using Value = std::decay_t<std::invoke_result_t<F&>>;

  // Stores `make`, which creates the value on first use.
  // Throws: what moving `make` throws.
  explicit OnceValue(F make) : make_(std::move(make)) {}
  // Returns the value; the first call creates it.
  [[nodiscard]] const Value& get() {
    once_.call([this] { value_.emplace(make_()); });
    return *value_;
  }
  // Accesses the value, as get() does.
  [[nodiscard]] const Value& operator*() { return get(); }
  // Accesses the value, as get() does.
  [[nodiscard]] const Value* operator->() { return &get(); }

 private:
  F make_;
  Once once_;
  std::optional<Value> value_;
};

}  // namespace weft
