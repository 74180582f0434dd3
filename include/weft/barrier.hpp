// Lets a fixed number of callers wait for each other, phase by phase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <weft/detail/late_wait.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

namespace detail {

// The untyped core of Barrier. It counts arrivals, and releases the waiters when the last arriver
// has completed the phase.
// Invariants
//   I1  Only complete() changes phase_. The last arriver of a phase calls it while missing_ is 0.
//       Until the next phase begins, subtract() treats any further arrival as misuse.
//   I2  Each waiter in the list waits for the current phase to end. Not asserted, because a waiter
//       does not record its phase.
class BarrierCore {
 public:
  struct Arrival {
    std::uint64_t phase;
    bool is_last;  // If true, the caller must call complete().
  };

  explicit BarrierCore(std::ptrdiff_t expected) noexcept;
  // Counts `count` arrivals. Later phases expect `dropped` fewer callers.
  [[nodiscard]] Arrival arrive(std::ptrdiff_t count, std::ptrdiff_t dropped) noexcept;
  // Arrives and enters the wait list in one critical section. Otherwise, another caller could
  // destroy the barrier in between. Returns true to the last arriver, which must call complete().
  [[nodiscard]] bool arrive_and_wait() noexcept;
  void complete() noexcept;
  // Waits until `phase` is over; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(std::uint64_t phase, const Until& until) noexcept;

 private:
  // Counts `count` arrivals. Returns true if all expected callers have arrived.
  [[nodiscard]] bool subtract(std::ptrdiff_t count) noexcept WEFT_REQUIRES(lock_);

  SpinLock lock_;
  std::ptrdiff_t expected_ WEFT_GUARDED_BY(lock_);
  std::ptrdiff_t missing_ WEFT_GUARDED_BY(lock_);
  std::uint64_t phase_ WEFT_GUARDED_BY(lock_) = 0;
  WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

struct NoCompletion {
  void operator()() const noexcept {}
};

}  // namespace detail

// Works like std::barrier: a fixed number of callers pass through phases. A phase ends when all
// callers have arrived. The last caller to arrive then runs the completion function, before any
// caller is released. The completion function may park, but must not use the barrier.
// Context: fibers and plain threads; waits and arrive_and_wait() park. The last arrival of a phase
// parks if the completion function parks.
// Ordering: each arrival synchronizes with the start of the completion function. The end of that
// function synchronizes with the return of each successful wait.
// Lifetime: the barrier may be destroyed once every call has returned. If all callers use
// arrive_and_wait(), it may be destroyed once any call for the last phase has returned.
template <class CompletionFunction = detail::NoCompletion>
class Barrier {
  static_assert(std::is_nothrow_invocable_v<CompletionFunction&>,
                "the completion function must be noexcept, as for std::barrier");

 public:
  // Identifies the phase in which a caller has arrived.
  class arrival_token {
   public:
    arrival_token(arrival_token&&) noexcept = default;
    arrival_token& operator=(arrival_token&&) noexcept = default;

   private:
    friend class Barrier;
    explicit arrival_token(std::uint64_t phase) noexcept : phase_(phase) {}
    std::uint64_t phase_;
  };

  // Returns the maximum number of callers of a barrier.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept {
    return std::numeric_limits<std::ptrdiff_t>::max();
  }
  // Creates a barrier for `expected` callers; `expected` must not be negative.
  // Throws: what moving `completion` throws.
  explicit Barrier(std::ptrdiff_t expected, CompletionFunction completion = CompletionFunction())
      : core_(expected), completion_(std::move(completion)) {}
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Arrives for `count` callers without waiting. The last arriver runs the completion function.
  // A `count` below 1, or more arrivals than expected, ends the process with a report.
  [[nodiscard]] arrival_token arrive(std::ptrdiff_t count = 1) noexcept {
    const detail::BarrierCore::Arrival arrival = core_.arrive(count, 0);
    if (arrival.is_last) complete();
    return arrival_token(arrival.phase);
  }
  // Parks until the phase of `token` is over.
  void wait(arrival_token&& token) noexcept {
    WEFT_TELL_LATE_WAIT(barrier, core_.wait_until(token.phase_, Deadline::past()));
    (void)core_.wait_until(token.phase_, {});
  }
  // Waits as wait() does; returns false if `until` ended the wait. The arrival is never undone.
  [[nodiscard]] bool wait_until(const arrival_token& token, const Until& until) noexcept {
    return core_.wait_until(token.phase_, until);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(const arrival_token& token,
                              std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(token, Deadline::after(duration));
  }
  // Arrives and waits until the phase is over.
  void arrive_and_wait() noexcept {
    if (core_.arrive_and_wait()) complete();
  }
  // Arrives for a caller that will not arrive in later phases.
  void arrive_and_drop() noexcept {
    if (core_.arrive(1, 1).is_last) complete();
  }

 private:
  void complete() noexcept {
    completion_();
    core_.complete();
  }

  detail::BarrierCore core_;
  [[no_unique_address]] CompletionFunction completion_;
};

}  // namespace weft
