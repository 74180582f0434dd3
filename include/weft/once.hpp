// The first caller does something, once.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/detail/waiter.hpp>

namespace weft {

// std::once_flag for fibers and plain threads. The first caller runs its function; callers that
// come meanwhile park until it is over. If it throws, its caller gets the exception and the one
// that has waited longest runs its own. Waits cannot be ended early: what was begun is finished. A
// call from within the function, on the same Once, deadlocks.
// The end of the function synchronizes with the return of every call().
// It may be destroyed once every call() has returned.
// Invariant: running_ is set while somebody runs its function, or was told to.
// Order
//   [done]  finish stores done_ (release) -> done_hint loads it (acquire).
class Once {
 public:
  Once() noexcept = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  // Runs function(arguments...), unless a call() before has done so without throwing. Parks while
  // the function of another caller runs.
  template <class F, class... Arguments>
  requires std::invocable<F, Arguments...>
  void call(F&& function, Arguments&&... arguments) {
    if (done_hint() || !begin()) return;
    Attempt attempt{this};
    std::invoke(std::forward<F>(function), std::forward<Arguments>(arguments)...);
    std::exchange(attempt.once, nullptr)->finish();
  }
  // Returns whether it has been done; what it did is visible then. Never parks.
  [[nodiscard]] bool done_hint() const noexcept { return done_.load(detail::acquire); }  // [done]

 private:
  struct Attempt {
    Once* once;
    ~Attempt() {
      if (once != nullptr) once->pass_on();
    }
  };

  // Returns true when the caller is to run its function; false when it has been done.
  [[nodiscard]] bool begin() noexcept;
  void finish() noexcept;
  void pass_on() noexcept;

  detail::Atomic<bool> done_{false};  // Written under the lock.
  detail::SpinLock lock_;
  bool running_ WEFT_GUARDED_BY(lock_) = false;
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

// std::call_once for a Once: as Once::call().
template <class F, class... Arguments>
requires std::invocable<F, Arguments...>
void call_once(Once& once, F&& function, Arguments&&... arguments) {
  once.call(std::forward<F>(function), std::forward<Arguments>(arguments)...);
}

// A value that is made when it is first asked for, once:
//
//   weft::OnceValue settings([] { return read_settings(); });
//   settings->port;
//
// From fibers and plain threads; parks while somebody else makes it. An exception that making it
// throws goes to the caller, and the next one tries again. May be destroyed once no call is under
// way. Making it synchronizes with what returns the value.
template <std::invocable F>
class OnceValue {
 public:
  using Value = std::decay_t<std::invoke_result_t<F&>>;

  // Calls nothing yet.
  explicit OnceValue(F make) : make_(std::move(make)) {}
  // The value; the first call makes it, and others park meanwhile. Throws what making it throws.
  // Making it synchronizes with each return.
  [[nodiscard]] const Value& get() {
    once_.call([this] { value_.emplace(make_()); });
    return *value_;
  }
  // Does the same as get().
  [[nodiscard]] const Value& operator*() { return get(); }
  // Does the same as get().
  [[nodiscard]] const Value* operator->() { return &get(); }

 private:
  F make_;
  Once once_;
  std::optional<Value> value_;
};

}  // namespace weft
