// Waits until a number of operations have finished.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <weft/detail/task.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/detail/wrong_callable.hpp>

namespace weft {

// Counts unfinished work, like Go's sync.WaitGroup. Call go() and wait(), or call add() before each
// spawn and done() at the end of the work.
// Context: fibers and plain threads; wait(), wait_until() and wait_for() park.
// Ordering: done() synchronizes with the return of each successful wait that awaited it.
// Lifetime: the group may be destroyed or reused once a wait has succeeded and none is pending.
// Invariants
//   I1  word_ = 2 * count + (1 if a waiter may be in the list).
//   I2  The waiter bit is set and cleared under waiters_lock_ only.
//   I3  A caller that brings the count to 0 with the bit set locks waiters_lock_, wakes all waiters
//       and clears the bit. While the bit is set, at least one waiter remains and keeps the group
//       alive. Not asserted, because the list may be empty before the bit is clear.
// Order
//   [count]  done() subtracts (acq_rel) -> wait() loads 0 (acquire): wait() sees all finished work.
class WaitGroup {
 public:
  WaitGroup() noexcept = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  // Adds `count` to the number of awaited done() calls. Relaxed: the later spawn publishes the
  // count to the fiber that calls done().
  void add(std::uint64_t count = 1) noexcept { word_.fetch_add(2 * count, detail::relaxed); }

  // Subtracts 1 from the count. If the count is already 0, reports the misuse and aborts.
  void done() noexcept {
    const std::uint64_t before = word_.fetch_sub(2, detail::acq_rel);  // [count]
    if (before - 2 <= 1 || before < 2) [[unlikely]]
      reached_zero(before);
  }

  // Starts a detached fiber that is counted until `callable` and its captures have been destroyed.
  // An exception that `callable` throws has the same effect as in weft::go().
  // Throws: whatever weft::go() throws; the count is then unchanged.
  template <std::invocable F>
  void go(F&& callable) {
    detail::spawn(detail::Task(Counted<std::decay_t<F>>{Count(*this), std::forward<F>(callable)}));
  }
  template <std::invocable F>
  void go(const SpawnOptions& options, F&& callable) {
    detail::spawn(detail::Task(Counted<std::decay_t<F>>{Count(*this), std::forward<F>(callable)}),
                  options);
  }
  // These overloads exist only for their error messages.
  template <class F>
  requires(!std::invocable<F>) void go(F&&) {
    static_assert(detail::kFits<F>, "weft::WaitGroup::go: the callable must take no arguments");
  }
  template <class F>
  requires(!std::invocable<F>) void go(const SpawnOptions&, F&&) {
    static_assert(detail::kFits<F>, "weft::WaitGroup::go: the callable must take no arguments");
  }

  // Parks until the count is 0. Meanwhile, fibers that go() has added but that have not started may
  // run on the caller's stack, as in JoinHandle::join().
  void wait() noexcept {
    while (count_hint() != 0 && detail::run_in_place(this, detail::WaitReason::wait_group)) {
    }
    (void)wait_until({});
  }
  // Parks until the count is 0; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(Deadline::after(duration));
  }

 private:
  static constexpr std::uint64_t kWaiters = 1;

  // Adds 1 to the group's count for as long as the object lives.
  class Count {
   public:
    explicit Count(WaitGroup& group) noexcept : group_(&group) { group.add(); }
    Count(Count&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
    Count& operator=(Count&&) = delete;
    ~Count() {
      if (group_ != nullptr) group_->done();
    }
    [[nodiscard]] const WaitGroup* group() const noexcept { return group_; }

   private:
    WaitGroup* group_;
  };
  // Members are destroyed in reverse order: first the callable, then the count.
  template <class F>
  struct Counted {
    using Shown = F;  // Dumps show this type instead of the wrapper.

    [[nodiscard]] const void* join_target() const noexcept { return count.group(); }

    Count count;
    F callable;
    void operator()() { callable(); }
  };

  // Relaxed: the value only decides whether wait() looks for a fiber to run in place.
  [[nodiscard]] std::uint64_t count_hint() const noexcept {
    return word_.load(detail::relaxed) / 2;
  }
  [[nodiscard]] bool stop_waiting() noexcept;
  void reached_zero(std::uint64_t before) noexcept;

  detail::Atomic<std::uint64_t> word_{0};
  detail::SpinLock waiters_lock_;
  detail::WaitList waiters_ WEFT_GUARDED_BY(waiters_lock_);
};

}  // namespace weft
