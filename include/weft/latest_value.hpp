// The value that holds now, and waits for the next one.
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

// The number of a value that is replaced, and the callers that wait for another one. A value is
// replaced and copied under the lock; the copy neither allocates nor throws.
// Invariant: a waiter's `amount` is the version that it has seen, version_ or an earlier one whose
// end is waking it. Unlike an Event, a new version wakes no caller that has begun to wait for a
// later one.
class VersionCore {
 public:
  VersionCore() noexcept = default;
  VersionCore(const VersionCore&) = delete;
  VersionCore& operator=(const VersionCore&) = delete;

  // Around what the owner does to its value.
  [[nodiscard]] SpinLock& lock() noexcept WEFT_RETURNS_LOCK(lock_) { return lock_; }
  [[nodiscard]] std::uint64_t version() const noexcept WEFT_REQUIRES(lock_) { return version_; }
  // The value has been replaced: wakes the callers that wait.
  void advance_and_unlock() noexcept WEFT_RELEASES(lock_);

  // Parks while the version is `seen`. False when `until` ended the wait.
  [[nodiscard]] bool wait_until(std::uint64_t seen, const Until& until) noexcept;
  // For a select, with the lock held.
  [[nodiscard]] WaitList& waiters() noexcept WEFT_REQUIRES(lock_) { return waiters_; }

 private:
  SpinLock lock_;
  std::uint64_t version_ WEFT_GUARDED_BY(lock_) = 1;
  WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace detail

// A value of which only the latest counts, such as a configuration or a state; tokio's watch. A
// caller that waits learns that the value has been replaced, and sees the newest one: it may miss
// values in between, and never gets an older one after a newer one.
//
//   LatestValue<Settings> settings(read_settings());
//   go([&] {
//     std::uint64_t seen = 0;
//     for (;;) apply(settings.wait_changed(seen));
//   });
//   settings.set(read_settings());
//
// All calls from fibers and plain threads, any number of callers at once. A set() wakes only
// callers that wait, and callers that only read never wait for each other's copies. A T whose
// copies may throw, or of more than 64 bytes, is kept in shared memory. Synchronizes: a set() with
// each call that returns its value or a later one. It may be destroyed once every call has
// returned. Calls park and throw where they say so.
template <class T>
class LatestValue {
  static_assert(std::is_copy_constructible_v<T>, "each caller is given a copy");

 public:
  // Throws std::bad_alloc for a T in shared memory.
  explicit LatestValue(T value) : value_(detail::make_shared_value<T>(std::move(value))) {}
  LatestValue(const LatestValue&) = delete;
  LatestValue& operator=(const LatestValue&) = delete;

  // Replaces the value. Wakes all that wait for another one. Never parks. Throws as the
  // constructor.
  void set(T value) {
    Value kept = detail::make_shared_value<T>(std::move(value));
    replace(kept);
  }
  // The value. Never parks. Throws what copying T throws, as all calls do that return a T.
  [[nodiscard]] T get() {
    std::uint64_t seen = 0;
    return get(seen);
  }
  // The same; `seen` is set to the number of the value, for wait_changed(). Numbers begin with 1,
  // and grow with each set().
  [[nodiscard]] T get(std::uint64_t& seen) {
    Value kept;
    copy(kept, seen);
    return *kept;
  }

  // Parks while the value has the number `seen`; returns the newest value, and sets `seen` to its
  // number. With 0 it returns at once.
  [[nodiscard]] T wait_changed(std::uint64_t& seen) {
    (void)core_.wait_until(seen, {});
    return get(seen);
  }
  // Does as wait_changed(), but `until` may end the wait: returns nothing then, and leaves `seen`.
  [[nodiscard]] std::optional<T> wait_changed_until(std::uint64_t& seen, const Until& until) {
    if (!core_.wait_until(seen, until)) return std::nullopt;
    return get(seen);
  }

  // Parks until `condition` is true of the value, which it returns. The condition is called with
  // copies, first with the present one, without a lock; what it throws comes out.
  template <std::predicate<const T&> Condition>
  [[nodiscard]] T wait(Condition condition) {
    return *wait_until({}, std::move(condition));
  }
  // Does as wait(), but `until` may end the wait: returns nothing then.
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
  // Does as wait_until(), for `duration` at most.
  template <class Rep, class Period, std::predicate<const T&> Condition>
  [[nodiscard]] std::optional<T> wait_for(std::chrono::duration<Rep, Period> duration,
                                          Condition condition) {
    return wait_until(Deadline::after(duration), std::move(condition));
  }

  // For a select. Never parks.
  [[nodiscard]] detail::VersionCore& core() noexcept { return core_; }

 private:
  using Value = detail::SharedValue<T>;

  // What was there before is destroyed by the caller, without the lock.
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
  Value value_;  // Guarded by core_.lock().
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
  // The select holds the lock, which it knows by a pointer.
  bool is_ready() noexcept override WEFT_NOT_ANALYZED {
    waiter().amount = seen_;
    return value_.core().version() != seen_;
  }
  bool conclude() noexcept override { return true; }  // Versions only grow.

  LatestValue<T>& value_;
  std::uint64_t& seen_;
  Handler handler_;
};

}  // namespace detail

// A case of a select(): the value has another number than `seen`. The handler takes a T, the newest
// value; `seen` is set to its number before. Made by the caller of the select(), which alone parks
// and synchronizes; throws what moving `handler` throws, and the select() what copying T throws.
template <class T, std::invocable<T> Handler>
[[nodiscard]] auto on_change(LatestValue<T>& value, std::uint64_t& seen, Handler handler) {
  return detail::ChangeCase<T, Handler>(value, seen, std::move(handler));
}

}  // namespace weft
