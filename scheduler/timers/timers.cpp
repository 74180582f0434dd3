#include "scheduler/timers/timers.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <weft/detail/invariant.hpp>

namespace weft::scheduler {

using detail::relaxed;

void Timers::link(Timer& timer) noexcept {
  WEFT_INVARIANT(timer.tick > now_, "Timers I1: a linked timer is due after now_");
  const std::uint64_t difference = timer.tick ^ now_;
  const unsigned highest = static_cast<unsigned>(std::bit_width(difference | 1)) - 1;
  const unsigned level = std::min(highest / kSlotBits, kLevels - 1);
  const auto slot = static_cast<unsigned>(timer.tick >> (level * kSlotBits)) % kSlots;
  timer.level = static_cast<std::uint8_t>(level);
  timer.slot = static_cast<std::uint8_t>(slot);
  timer.linked = true;
  timer.previous = nullptr;
  timer.next = slots_[level][slot];
  if (timer.next != nullptr) timer.next->previous = &timer;
  slots_[level][slot] = &timer;
  occupied_[level] |= std::uint64_t{1} << slot;
}

void Timers::unlink(Timer& timer) noexcept {
  WEFT_INVARIANT(is_in_place(timer),
                 "Timers I1: a timer is in the level of its highest difference");
  WEFT_INVARIANT((occupied_[timer.level] >> timer.slot & 1) != 0,
                 "Timers I2: a slot that is not empty has its bit set");
  if (timer.previous != nullptr) {
    timer.previous->next = timer.next;
  } else {
    slots_[timer.level][timer.slot] = timer.next;
    if (timer.next == nullptr) occupied_[timer.level] &= ~(std::uint64_t{1} << timer.slot);
  }
  if (timer.next != nullptr) timer.next->previous = timer.previous;
  timer.linked = false;
}

bool Timers::add(Timer& timer, Deadline deadline) noexcept {
  const detail::SpinGuard guard(lock_);
  timer.home = this;
  timer.tick = tick_for(deadline);
  return insert(timer);
}

bool Timers::insert(Timer& timer) noexcept {
  link(timer);
  if (timer.tick >= next_tick_.load(relaxed)) return false;
  next_tick_.store(timer.tick, relaxed);
  return true;
}

void Timers::cancel(Timer& timer) noexcept {
  const detail::SpinGuard guard(lock_);
  if (timer.linked) unlink(timer);
}

Timers::Next Timers::find_next() const noexcept {
  for (unsigned level = 0; level < kLevels; ++level) {
    const unsigned shift = level * kSlotBits;
    const auto here = static_cast<unsigned>(now_ >> shift) % kSlots;
    // The occupied slots after the current slot; by I1 no earlier slot is occupied.
    const std::uint64_t later =
        here == kSlots - 1 ? 0 : occupied_[level] >> (here + 1) << (here + 1);
    if (later == 0) continue;
    const std::uint64_t block = now_ >> shift >> kSlotBits << kSlotBits;
    return {(block | static_cast<unsigned>(std::countr_zero(later))) << shift, level};
  }
  return {kNoTick, 0};
}

// Returns the tick of the earliest timer in the slot if the slot has few timers; otherwise the tick
// at which the slot begins. A single timer therefore wakes its worker only once, not each time that
// the timer moves down a level.
std::uint64_t Timers::earliest_of(const Next& next) const noexcept {
  if (next.level == 0 || next.tick == kNoTick) return next.tick;
  constexpr unsigned kFew = 16;
  std::uint64_t earliest = kNoTick;
  unsigned seen = 0;
  const auto slot = static_cast<unsigned>(next.tick >> (next.level * kSlotBits)) % kSlots;
  for (const Timer* timer = slots_[next.level][slot]; timer != nullptr; timer = timer->next) {
    if (++seen > kFew) return next.tick;
    earliest = std::min(earliest, timer->tick);
  }
  return earliest;
}

Timer* Timers::take_slot(unsigned level, unsigned slot) noexcept {
  WEFT_INVARIANT((slots_[level][slot] != nullptr) == ((occupied_[level] >> slot & 1) != 0),
                 "Timers I2: a bit is set exactly for a slot that is not empty");
  occupied_[level] &= ~(std::uint64_t{1} << slot);
  return std::exchange(slots_[level][slot], nullptr);
}

Timer* Timers::expire(std::int64_t now_nanoseconds) noexcept {
  const std::uint64_t until = static_cast<std::uint64_t>(now_nanoseconds) >> kTickShift;
  Timer* expired = nullptr;
  const detail::SpinGuard guard(lock_);
  Next next = find_next();
  for (; next.tick <= until; next = find_next()) {
    now_ = next.tick;
    const auto slot = static_cast<unsigned>(now_ >> (next.level * kSlotBits)) % kSlots;
    for (Timer* timer = take_slot(next.level, slot); timer != nullptr;) {
      Timer* following = timer->next;
      // The next timer is on another fiber's stack, which is probably not in the cache.
      __builtin_prefetch(following);
      if (timer->tick > now_) {
        link(*timer);  // Moves the timer to the level for its remaining time.
      } else {
        timer->linked = false;
        if (timer->claim == nullptr || timer->claim->try_claim(detail::Claim::kClock)) {
          timer->next = expired;
          expired = timer;
        }
      }
      timer = following;
    }
  }
  now_ = std::max(now_, std::min(until, next.tick - 1));
  next_tick_.store(earliest_of(next), relaxed);
  WEFT_INVARIANT(next_tick_.load(relaxed) > now_, "Timers I3: no due timer was left");
  return expired;
}

Deadline Timers::next_hint() const noexcept {
  const std::uint64_t tick = next_tick_.load(relaxed);
  if (tick >= kNoTick >> kTickShift) return Deadline::never();
  return Deadline::at_nanoseconds(static_cast<std::int64_t>(tick << kTickShift));
}

}  // namespace weft::scheduler
