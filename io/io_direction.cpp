#include "io/io_direction.hpp"

#include <weft/detail/bounded_park.hpp>
#include <weft/detail/invariant.hpp>

#include "base/panic.hpp"

namespace weft::io {

using detail::acq_rel;
using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

constexpr const char* kTwoWaiters =
    "two callers wait for the same direction of one descriptor: one may read and one may write; "
    "let one fiber do either, or hold a weft::Mutex over it";

}  // namespace

// Records one wait of one caller; it is on the caller's stack.
struct IoDirection::Waiter {
  IoDirection* direction;
  detail::Waker waker;
  detail::Claim* claim;                      // Null: only a deliverer can end the wait.
  WaitOutcome outcome = WaitOutcome::ready;  // Written by the claim's winner, before the wake.
  detail::Atomic<bool> let_go{false};        // Set by a deliverer that lost the claim.
};

WaitOutcome IoDirection::wait(const Until& caller, detail::WaitReason reason) noexcept {
  if (take_edge()) return WaitOutcome::ready;
  const std::uintptr_t word = word_.load(acquire);  // [edge]
  if (word == kClosed) return WaitOutcome::closed;
  WEFT_CHECK(word == kIdle || word == kReady, kTwoWaiters);
  // Read after take_edge(): a deadline that is set later leaves an edge, which ends the wait below.
  const Until until = caller.but_before(deadline());
  if (until.deadline().passed()) return WaitOutcome::timed_out;
  if (until.stop_requested()) return WaitOutcome::stopped;

  detail::BoundedPark bounded(until);
  Waiter self{this, detail::current(), until.is_never() ? nullptr : &bounded.claim()};
  const detail::After after{&IoDirection::publish, &self};
  if (self.claim == nullptr) {
    detail::park(after, reason);
    return self.outcome;
  }
  const detail::Claim::Winner winner = bounded.park(after, reason);
  if (winner == detail::Claim::kNotifier) return self.outcome;
  withdraw(reinterpret_cast<std::uintptr_t>(&self), self.let_go);
  return winner == detail::Claim::kStop ? WaitOutcome::stopped : WaitOutcome::timed_out;
}

// Runs once the waiting caller's registers are saved.
void IoDirection::publish(void* waiter) noexcept {
  static_cast<Waiter*>(waiter)->direction->enter(reinterpret_cast<std::uintptr_t>(waiter));
}

// After the exchange that publishes it, the entry (a waiter or a watch) is not touched again. If an
// edge came first, it is delivered here.
void IoDirection::enter(std::uintptr_t entry) noexcept {
  WEFT_INVARIANT(entry > kWatch && (entry & (kReady | kClosed)) == 0,
                 "IoDirection I1: an entry is an address, perhaps with kWatch");
  std::uintptr_t expected = kIdle;
  while (!word_.compare_exchange_weak(expected, entry, acq_rel,  // [waiter]
                                      acquire)) {                // [edge]
    if (expected == kClosed) {
      (void)deliver(entry, WaitOutcome::closed);
      return;
    }
    if (expected == kReady && take_edge()) {
      (void)deliver(entry, WaitOutcome::ready);
      return;
    }
    WEFT_CHECK(expected == kIdle || expected == kReady, kTwoWaiters);
    expected = kIdle;
  }
}

void IoDirection::add_watch(detail::IoWatch& watch) noexcept {
  watch.let_go.store(false, relaxed);  // Relaxed: published by enter().
  enter(reinterpret_cast<std::uintptr_t>(&watch) | kWatch);
}

void IoDirection::remove_watch(detail::IoWatch& watch) noexcept {
  withdraw(reinterpret_cast<std::uintptr_t>(&watch) | kWatch, watch.let_go);
}

bool IoDirection::tell(detail::IoWatch& watch) noexcept {
  WEFT_INVARIANT(!watch.let_go.load(relaxed), "IoDirection I3: a watch is told once");
  const detail::Waker waker = watch.tell(watch);
  watch.let_go.store(true, release);  // [let_go]
  if (!waker) return false;
  detail::wake(waker);
  return true;
}

// Ends the wait of `entry`, or notifies the watch. The thread that removed `entry` from word_ calls
// it. Returns true if it woke a caller.
bool IoDirection::deliver(std::uintptr_t entry, WaitOutcome outcome) noexcept {
  if ((entry & kWatch) != 0) [[unlikely]] {
    return tell(*reinterpret_cast<detail::IoWatch*>(entry - kWatch));
  }
  Waiter& waiter = *reinterpret_cast<Waiter*>(entry);
  WEFT_INVARIANT(!waiter.let_go.load(relaxed), "IoDirection I3: a waiter is let go once");
  if (waiter.claim != nullptr && !waiter.claim->try_claim(detail::Claim::kNotifier)) {
    // The deadline or a stop request ended the wait first. The edge stays for the next wait. If
    // another thread has closed the direction, or has stored an edge as well, there is nothing to
    // add.
    std::uintptr_t expected = kIdle;
    if (outcome == WaitOutcome::ready) {
      (void)word_.compare_exchange_strong(expected, kReady, acq_rel, relaxed);  // [edge]
    }
    waiter.let_go.store(true, release);  // [let_go]
    return false;
  }
  waiter.outcome = outcome;
  detail::wake(waiter.waker);
  return true;
}

// Ensures that no thread accesses the caller's waiter any more, if no deliverer woke the caller.
void IoDirection::withdraw(std::uintptr_t entry, const detail::Atomic<bool>& let_go) noexcept {
  for (;;) {
    std::uintptr_t expected = entry;
    // Relaxed on failure: no other value of the word leads to data.
    if (word_.compare_exchange_strong(expected, kIdle, acq_rel, relaxed)) return;  // [waiter]
    if (let_go.load(acquire)) return;                                              // [let_go]
    // A deliverer is between its exchange and let_go, a few instructions away.
    detail::yield();
  }
}

bool IoDirection::take_edge() noexcept {
  std::uintptr_t expected = kReady;
  // Relaxed: this load may save the exchange; publish() finds an edge that the load misses.
  return word_.load(relaxed) == kReady &&
         word_.compare_exchange_strong(expected, kIdle, acq_rel, relaxed);  // [edge]
}

bool IoDirection::worth_trying() noexcept {
  // Records the edge, because the caller may have to give up before it tries.
  if (take_edge()) set_drained(false);
  return !drained_.load(relaxed) || always_worth_trying_.load(relaxed);
}

bool IoDirection::notify() noexcept {
  std::uintptr_t word = word_.load(relaxed);  // Relaxed: the exchange below decides.
  for (;;) {
    if (word == kReady || word == kClosed) return false;
    const std::uintptr_t next = word == kIdle ? kReady : kIdle;
    if (word_.compare_exchange_weak(word, next, acq_rel, relaxed)) break;  // [edge] [waiter]
  }
  return word != kIdle && deliver(word, WaitOutcome::ready);
}

void IoDirection::close() noexcept {
  const std::uintptr_t word = word_.exchange(kClosed, acq_rel);  // [waiter]
  WEFT_INVARIANT(word_.load(relaxed) == kClosed, "IoDirection I2: kClosed is final until reset()");
  if (word > kClosed) (void)deliver(word, WaitOutcome::closed);
}

void IoDirection::set_deadline(Deadline deadline) noexcept {
  deadline_.store(deadline.nanoseconds(), relaxed);  // Relaxed: published by [edge] below.
  // The word is written even if it is kReady already, so that the caller that takes that edge sees
  // the new deadline.
  word_.fetch_or(0, acq_rel);  // [edge]
  (void)notify();
}

}  // namespace weft::io
