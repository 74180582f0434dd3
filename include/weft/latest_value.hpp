// Holds a current value, and lets callers wait for its replacement.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/detail/shared_value.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

namespace detail {

// Holds the version number of a value, and the callers that wait for a new version. A value is
// replaced and copied under the lock; the copy neither allocates nor throws.
// Invariant: a waiter's `amount` is the last version that the waiting caller saw. It is below
// version_ only while a set() wakes the waiters. A set() wakes only waiters that have not seen its
// version. A caller that starts to wait meanwhile has already seen that version, and is not woken.
class VersionCore {
 public:
  VersionCore() noexcept = default;
  VersionCore(const VersionCore&) = delete;
  VersionCore& operator=(const VersionCore&) = delete;

  // The owner of this core must hold the lock while it accesses the value.
  [[nodiscard]] SpinLock& lock() noexcept WEFT_RETURNS_LOCK(lock_) { return lock_; }
  [[nodiscard]] std::uint64_t version() const noexcept WEFT_REQUIRES(lock_) { return version_; }
  // Increments the version and wakes the waiters. Call it after the value has been replaced.
  void advance_and_unlock() noexcept WEFT_RELEASES(lock_);

  // Parks while the version is `seen`. Returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(std::uint64_t seen, const Until& until) noexcept;
  // Called by a select, which holds the lock.
  [[nodiscard]] WaitList& waiters() noexcept WEFT_REQUIRES(lock_) { return waiters_; }

 private:
  SpinLock lock_;
  std::uint64_t version_ WEFT_GUARDED_BY(lock_) = 1;
  WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace detail

// Holds a value of which only the latest version matters, such as a configuration (compare tokio's
// watch). A waiter receives the newest value. It may miss values in between, but never receives an
// older value after a newer value.
//
//   LatestValue<Settings> settings(read_settings());
//   go([&] {
//     std::uint64_t seen = 0;
//     for (;;) apply(settings.wait_changed(seen));
//   });
//   settings.set(read_settings());
//
// A set() wakes only callers that wait for a change. No call parks because another call is copying
// the value. A T that is larger than 64 bytes, or whose copies or swaps may throw, is kept on the
// heap.
// Context: fibers and plain threads; calls whose names begin with wait park.
// Throws: what copies and moves of T throw; std::bad_alloc for a T that is kept on the heap.
// Ordering: a set() synchronizes with each call that returns its value or a later value.
// Lifetime: a LatestValue may be destroyed once every call has returned.
template <class T>
class LatestValue {
  static_assert(std::is_copy_constructible_v<T>, "each caller is given a copy");

 public:
  // Creates an object whose first value is `value`.
  explicit LatestValue(T value) : value_(detail::make_shared_value<T>(std::move(value))) {}
  LatestValue(const LatestValue&) = delete;
  LatestValue& operator=(const LatestValue&) = delete;

  // Replaces the value and wakes all callers that wait for a change.
  void set(T value) {
    Value kept = detail::make_shared_value<T>(std::move(value));
    replace(kept);
  }
  // Returns the current value.
  [[nodiscard]] T get() {
    std::uint64_t seen = 0;
    return get(seen);
  }
  // Returns the value and sets `seen` to its number, for wait_changed(). The first value has number
  // 1; each set() increments the number.
  [[nodiscard]] T get(std::uint64_t& seen) {
    Value kept;
    copy(kept, seen);
    return *kept;
  }

  // Parks while the value's number is `seen`. Returns the newest value and sets `seen` to its
  // number. If `seen` is 0, returns at once.
  [[nodiscard]] T wait_changed(std::uint64_t& seen) {
    (void)core_.wait_until(seen, {});
    return get(seen);
  }
  // Waits as wait_changed() does. If `until` ended the wait, returns nothing; `seen` is unchanged.
  [[nodiscard]] std::optional<T> wait_changed_until(std::uint64_t& seen, const Until& until) {
    if (!core_.wait_until(seen, until)) return std::nullopt;
    return get(seen);
  }

  // Parks until `condition` holds for the value, and returns that value. `condition` is called
  // without a lock, first with a copy of the current value, then with copies of newer values.
  // Throws: also what `condition` and moves of it throw.
  template <std::predicate<const T&> Condition>
  [[nodiscard]] T wait(Condition condition) {
    return *wait_until({}, std::move(condition));
  }
  // Waits as wait() does; returns nothing if `until` ended the wait.
  template <std::predicate<const T&> Condition>
  [[nodiscard]] std::optional<T> wait_until(const Until& until, Condition condition) {
    std::uint64_t seen = 0;
    while (core_.wait_until(seen, until)) {
      Value kept;
      copy(kept, seen);
      if (condition(std::as_const(*kept))) return std::optional<T>(*kept);
    }
    return std::nullopt;
  }
  template <class Rep, class Period, std::predicate<const T&> Condition>
  [[nodiscard]] std::optional<T> wait_for(std::chrono::duration<Rep, Period> duration,
                                          Condition condition) {
    return wait_until(Deadline::after(duration), std::move(condition));
  }

  // Returns the internal core, which a select uses.
  [[nodiscard]] detail::VersionCore& core() noexcept { return core_; }

 private:
  using Value = detail::SharedValue<T>;

  // Moves the previous value into `value`; the caller destroys it after the lock is released.
  void replace(Value& value) noexcept {
    core_.lock().lock();
    std::swap(value_, value);
    core_.advance_and_unlock();
  }
  void copy(Value& out, std::uint64_t& seen) noexcept {
    const detail::SpinGuard guard(core_.lock());
    out = value_;
    seen = core_.version();
  }

  detail::VersionCore core_;
  Value value_ WEFT_GUARDED_BY(core_.lock());
};

namespace detail {

template <class T, class Handler>
class ChangeCase final : public SelectCase {
 public:
  ChangeCase(LatestValue<T>& value, std::uint64_t& seen, Handler handler) WEFT_NOT_ANALYZED
      : SelectCase(&value.core().lock(), &value.core().waiters()),
        value_(value),
        seen_(seen),
        handler_(std::move(handler)) {}

  void handle() override { handler_(value_.get(seen_)); }

 private:
  bool attempt() noexcept override {
    const SpinGuard guard(value_.core().lock());
    return value_.core().version() != seen_;
  }
  // The select holds the lock, which the lock analysis cannot detect.
  bool is_ready() noexcept override WEFT_NOT_ANALYZED {
    waiter().amount = seen_;
    return value_.core().version() != seen_;
  }
  bool conclude() noexcept override { return true; }  // A case that is ready remains ready.

  LatestValue<T>& value_;
  std::uint64_t& seen_;
  Handler handler_;
};

}  // namespace detail

// Returns a select case that is ready if the value's number is not `seen`. The handler takes the
// newest value, a T. Before the handler is called, `seen` is set to the number of that value.
// Context, Throws: the same as for on_stop(); the select() throws what copying T throws.
template <class T, std::invocable<T> Handler>
[[nodiscard]] auto on_change(LatestValue<T>& value, std::uint64_t& seen, Handler handler) {
  return detail::ChangeCase<T, Handler>(value, seen, std::move(handler));
}

}  // namespace weft
