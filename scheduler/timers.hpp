// Fibers that wait for a moment.
#pragma once

#include <array>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waist.hpp>

namespace weft::scheduler {

class Timers;

// One pending wake-up; lives on the stack of the fiber that waits. Guarded by its home's lock.
struct Timer {
  Timer* next = nullptr;
  Timer* previous = nullptr;
  std::uint64_t tick = 0;
  detail::Waker waker;
  detail::Claim* claim = nullptr;  // Null: nothing but the clock ends this wait.
  Timers* home = nullptr;
  std::uint8_t level = 0;
  std::uint8_t slot = 0;
  bool linked = false;
};

// A hierarchical timing wheel, one per worker: adding and cancelling are constant time, and so,
// per timer, is expiring; a million pending deadlines cost no more each than ten.
// A tick is 65.5 us, about the slack the kernel allows itself; a deadline is rounded up to the
// next tick, so nothing fires early. Level n has 64 slots of 64^n ticks.
// The worker adds; anyone cancels or expires, since a fiber may have moved and a worker may be
// busy. A spin lock guards all, mostly uncontended.
// Invariants
//   I1  Every linked timer has tick > now_, and is in the level of the highest 6-bit group in
//       which its tick differs from now_; its upper groups equal those of now_.
//   I2  occupied_[level] has a bit set exactly for each slot that is not empty.
//   I3  next_tick_ is no later than the first tick at which anything is due or must move down.
class Timers {
 public:
  static constexpr unsigned kTickShift = 16;
  static constexpr std::uint64_t kNoTick = ~std::uint64_t{0};

  explicit Timers(std::int64_t now_nanoseconds) noexcept
      : now_(static_cast<std::uint64_t>(now_nanoseconds) >> kTickShift) {}
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  // Sets timer.home. True when it is now the earliest. After this call the timer may fire, and its
  // memory be gone, at any moment.
  void add(Timer& timer, Deadline deadline) noexcept;
  // Does nothing if it has fired. After it the timer's memory may be reused.
  void cancel(Timer& timer) noexcept;

  // Takes out everything due at `now_nanoseconds` whose claim the clock wins, as a chain through
  // Timer::next; the caller owes each a wake. Null when nothing is due.
  [[nodiscard]] Timer* expire(std::int64_t now_nanoseconds) noexcept;

  // When to look again; never too late, perhaps too early. From any thread.
  [[nodiscard]] Deadline next_hint() const noexcept;
  [[nodiscard]] bool due_hint(std::int64_t now_nanoseconds) const noexcept {
    return next_tick_.load(detail::relaxed) <= static_cast<std::uint64_t>(now_nanoseconds) >>
           kTickShift;
  }

 private:
  static constexpr unsigned kSlotBits = 6;
  static constexpr unsigned kSlots = 1U << kSlotBits;
  static constexpr unsigned kLevels = 8;

  void link(Timer& timer) noexcept;
  void unlink(Timer& timer) noexcept;
  // The tick of the next occupied slot and its level; kNoTick when all is empty.
  struct Next {
    std::uint64_t tick;
    unsigned level;
  };
  [[nodiscard]] Next find_next() const noexcept;
  [[nodiscard]] Timer* take_slot(unsigned level, unsigned slot) noexcept;

  detail::SpinLock lock_;
  // Relaxed: a hint; whoever acts on it takes the lock.
  detail::Atomic<std::uint64_t> next_tick_{kNoTick};
  std::uint64_t now_;
  std::array<std::uint64_t, kLevels> occupied_{};
  std::array<std::array<Timer*, kSlots>, kLevels> slots_{};
};

}  // namespace weft::scheduler
