// Timers for fibers that wait until a given time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waist.hpp>

#include "scheduler/machine_clock.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

class Timers;

// A pending wakeup, on the stack of the waiting fiber. It is guarded by the lock of its timing
// wheel, to which `home` points. Not annotated, because clang cannot verify that the wheel that
// accesses a timer is `home`.
struct Timer {
  Timer* next = nullptr;
  Timer* previous = nullptr;
  std::uint64_t tick = 0;
  detail::Waker waker;
  detail::Claim* claim = nullptr;  // Null: only the clock ends this wait.
  Timers* home = nullptr;
  std::uint8_t level = 0;
  std::uint8_t slot = 0;
  bool linked = false;
  // True if the fiber to wake is the first in a list of fibers that sleep until this tick. The list
  // is linked through Fiber::next.
  bool leads = false;
};

// A hierarchical timing wheel, one per worker. Adding, cancelling and expiring a timer take
// constant time, whether ten or a million timers are pending. A tick is 65.5 us, close to the
// kernel's timer slack. Deadlines are rounded up to the next tick, so no timer fires early. Level n
// has 64 slots of 64^n ticks each. Only the owning worker adds timers. Any thread may cancel a
// timer, because its fiber may have moved to another worker. Any thread may expire timers, because
// the owning worker may be busy. A spin lock, mostly uncontended, guards all fields. A timer is on
// its fiber's stack, and the stack of a sleeping fiber is usually not in the cache. Fibers that
// begin to sleep in quick succession, and have the same wakeup tick, therefore share the first
// fiber's timer. The records of the other fibers form a chain behind the record of the first.
// Invariants
//   I1  Every linked timer has tick > now_. Its level is the index of the highest group of 6 bits
//       in which its tick and now_ differ.
//   I2  occupied_[level] has a bit set exactly for each slot that is not empty.
//   I3  next_tick_ is no later than the first tick at which a timer is due. now_ does not advance
//       beyond a slot that still contains timers.
//   I4  If an entry of latest_ has a tick > now_, its fiber is the last of a chain of sleepers. The
//       timer of that chain is still linked, because sleeps are never cancelled.
class Timers {
 public:
  static constexpr unsigned kTickShift = 16;
  static constexpr std::uint64_t kNoTick = ~std::uint64_t{0};

  explicit Timers(std::int64_t now_nanoseconds) noexcept
      : now_(static_cast<std::uint64_t>(now_nanoseconds) >> kTickShift) {}
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  // Sets timer.home. Returns true if next_hint() is now earlier; the caller may then have to notify
  // a sleeping worker. After this call the timer may fire, and its memory may be reused, at any
  // moment.
  bool add(Timer& timer, Deadline deadline) noexcept;
  // Does the same as add(), for a fiber that only the clock wakes. `timer.waker` must refer to that
  // fiber. If the fiber can join the chain of another sleeping fiber, `timer` is not used.
  bool add_sleep(Timer& timer, Deadline deadline) noexcept;
  // Adds `fiber` to the chain of fibers that sleep until the same tick, so that `fiber` needs no
  // timer. Returns false if there is no such chain, if another thread holds the lock, or if the
  // process is a simulation. After the fiber has parked, this call runs on the next fiber's
  // stack, whose memory is probably cold. The function makes no calls, so it needs no stack frame.
  [[nodiscard]] bool try_follow(fibers::Fiber& fiber, Deadline deadline) noexcept;
  // Does nothing if the timer has fired. Afterwards the timer's memory may be reused.
  void cancel(Timer& timer) noexcept;

  // Removes all timers due at `now_nanoseconds`. Returns the timers that thereby ended a wait, as a
  // list linked through Timer::next, or null if there are none. The caller must wake the fiber of
  // each timer, and all fibers in the chain behind that fiber.
  [[nodiscard]] Timer* expire(std::int64_t now_nanoseconds) noexcept;

  // Any thread may call it. Returns the time at which expire() must be called next, or an earlier
  // time.
  [[nodiscard]] Deadline next_hint() const noexcept;
  [[nodiscard]] bool due_hint(std::int64_t now_nanoseconds) const noexcept {
    return next_tick_.load(detail::relaxed) <= static_cast<std::uint64_t>(now_nanoseconds) >>
           kTickShift;
  }

 private:
  static constexpr unsigned kSlotBits = 6;
  static constexpr unsigned kSlots = 1U << kSlotBits;
  static constexpr unsigned kLevels = 8;

  // Returns the first tick that is after both the deadline and now_: a timer must not fire early,
  // and I1 must hold.
  [[nodiscard]] std::uint64_t tick_for(Deadline deadline) const noexcept WEFT_REQUIRES(lock_) {
    return tick_after(machine_time(deadline));
  }
  // Does the same as tick_for(), for a time on the machine's clock.
  [[nodiscard]] std::uint64_t tick_after(std::int64_t nanoseconds) const noexcept
      WEFT_REQUIRES(lock_) {
    return std::max((static_cast<std::uint64_t>(nanoseconds) >> kTickShift) + 1, now_ + 1);
  }
  [[nodiscard]] bool follow(fibers::Fiber& fiber, std::uint64_t tick) noexcept WEFT_REQUIRES(lock_);
  // Requires timer.tick to be set. Returns true if next_tick_ became lower.
  bool insert(Timer& timer) noexcept WEFT_REQUIRES(lock_);
  void link(Timer& timer) noexcept WEFT_REQUIRES(lock_);
  // Returns whether a linked timer is where I1 requires.
  [[nodiscard]] bool is_in_place(const Timer& timer) const noexcept WEFT_REQUIRES(lock_) {
    const unsigned shift = timer.level * kSlotBits;
    const bool is_top = timer.level == kLevels - 1;
    return timer.tick > now_ && timer.slot == (timer.tick >> shift) % kSlots &&
           (is_top || timer.tick >> shift >> kSlotBits == now_ >> shift >> kSlotBits);
  }
  void unlink(Timer& timer) noexcept WEFT_REQUIRES(lock_);
  // The tick and the level of the next occupied slot; kNoTick if all slots are empty.
  struct Next {
    std::uint64_t tick;
    unsigned level;
  };
  [[nodiscard]] Next find_next() const noexcept WEFT_REQUIRES(lock_);
  [[nodiscard]] std::uint64_t earliest_of(const Next& next) const noexcept WEFT_REQUIRES(lock_);
  [[nodiscard]] Timer* take_slot(unsigned level, unsigned slot) noexcept WEFT_REQUIRES(lock_);

  detail::SpinLock lock_;
  // Relaxed: the value is only a hint; a caller that acts on it checks the wheel under the lock.
  detail::Atomic<std::uint64_t> next_tick_{kNoTick};
  std::uint64_t now_ WEFT_GUARDED_BY(lock_);
  std::array<std::uint64_t, kLevels> occupied_ WEFT_GUARDED_BY(lock_){};
  std::array<std::array<Timer*, kSlots>, kLevels> slots_ WEFT_GUARDED_BY(lock_){};
  // The most recent sleeper for each of several ticks. With a single entry, fibers that sleep for
  // different times would overwrite each other's ticks, so most sleepers would find no chain.
  struct Latest {
    std::uint64_t tick = 0;
    fibers::Fiber* fiber = nullptr;
  };
  static constexpr std::size_t kLatest = 16;
  std::array<Latest, kLatest> latest_ WEFT_GUARDED_BY(lock_){};
};

}  // namespace weft::scheduler
