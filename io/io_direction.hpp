// Holds one direction of a descriptor, and the caller that waits for an edge.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/io_watch.hpp>
#include <weft/detail/waist.hpp>
#include <weft/until.hpp>

namespace weft::io {

enum class WaitOutcome : std::uint8_t {
  ready,      // Something may have happened: try the system call again. May be a false alarm.
  timed_out,  // The deadline passed first.
  stopped,    // A stop was requested first.
  closed,     // The descriptor was closed, before the wait or during it.
};

// One direction of a descriptor: whether an edge has come that no caller has taken, and which
// caller waits for an edge. At most one caller waits at a time; a second one ends the process. A
// waiter is on the parked stack. The thread that swaps its address out of word_ delivers to it. The
// waiting caller leaves only after that, so no thread reads a stack that is gone. Instead of a
// waiter, the word may have a watch, which is notified of the edge. So an edge reaches a select,
// which waits for several things. The rules for waiters hold for watches, too, but watches have no
// claim.
// Invariants
//   I1  word_ is kIdle, kReady, kClosed, the address of one parked Waiter, or that of one IoWatch
//       with kWatch added.
//   I2  kClosed is final until reset().
//   I3  The thread that replaces an address wins the waiter's claim and wakes its caller, or lets
//       it go; no thread touches the waiter after either.
// Order
//   [edge]     notify stores kReady (acq_rel) -> take_edge, publish take it away (acquire): what
//              the notifier saw (a hang-up, a new deadline) is visible.
//   [waiter]   publish stores the address (acq_rel) -> notify, close swap it out (acq_rel): the
//              waiter's fields are visible.
//   [let_go]   deliver, tell store let_go (release) -> withdraw loads it (acquire): the deliverer
//              has finished with the waiter.
// The kernel orders the rest. A system call that finds nothing has held the kernel's lock of the
// descriptor before the next data arrive under that lock. A worker fetches the event about these
// data later still. So its deliverer sees the word as it was before the system call, and cannot
// pass over an edge that has been taken.
class IoDirection {
 public:
  // Parks until an edge comes, or returns at once if one has come since the last attempt.
  WaitOutcome wait(const Until& until, detail::WaitReason reason) noexcept;
  // Drops the edges so far. Call it before a system call, which will see everything that these
  // edges reported. Returns false if no edge has come since set_drained(true): the call would find
  // nothing.
  [[nodiscard]] bool worth_trying() noexcept;
  // Records whether the last system call took everything. The caller that reads or writes calls it.
  void set_drained(bool drained) noexcept {
    // Relaxed here and in worth_trying: only a hint, since edges decide.
    if (drained_.load(detail::relaxed) != drained) drained_.store(drained, detail::relaxed);
  }

  // Notifies the watch of the next edge or the close. It does so at once if an edge has come since
  // the last attempt, or the direction is closed. Only the caller that may wait calls it, and it
  // must remove the watch.
  void add_watch(detail::IoWatch& watch) noexcept;
  // Once it returns, no thread notifies the watch or accesses it. It may be called for a watch that
  // was not added.
  void remove_watch(detail::IoWatch& watch) noexcept;

  // Wakes the waiting caller, or records the edge. Returns true if it woke a caller. Any thread may
  // call it.
  bool notify() noexcept;
  // Ends this wait and all later waits. Any thread may call it.
  void close() noexcept;
  // Bounds the current wait and all later waits. Any thread may call it.
  void set_deadline(Deadline deadline) noexcept;
  [[nodiscard]] Deadline deadline() const noexcept {
    // Relaxed: [edge] makes a new deadline visible to a wait that it must end.
    return Deadline::at_nanoseconds(deadline_.load(detail::relaxed));
  }
  // Makes worth_trying() always true, because a short read does not show that the next read would
  // wait. The poller, or the maker of the descriptor, calls it.
  void set_always_worth_trying() noexcept {
    // Relaxed: [edge] of the notify that follows makes it visible.
    if (!always_worth_trying_.load(detail::relaxed))
      always_worth_trying_.store(true, detail::relaxed);
  }
  // Prefetches the waiter, if a caller waits, for a delivery that comes soon.
  void prefetch_waiter() const noexcept {
    const std::uintptr_t word = word_.load(detail::relaxed);  // Relaxed: only a prefetch.
    if (word > kClosed) __builtin_prefetch(reinterpret_cast<const void*>(word), 1);
  }
  // Prepares the record for a new descriptor. The thread that takes it from the free list calls it.
  void reset() noexcept {
    // Relaxed: a thread that gets the new descriptor synchronizes with the caller.
    deadline_.store(Deadline::never().nanoseconds(), detail::relaxed);
    drained_.store(false, detail::relaxed);
    always_worth_trying_.store(false, detail::relaxed);
    word_.store(kIdle, detail::relaxed);
  }

 private:
  struct Waiter;
  static constexpr std::uintptr_t kIdle = 0;
  static constexpr std::uintptr_t kReady = 1;
  static constexpr std::uintptr_t kClosed = 2;
  static constexpr std::uintptr_t kWatch = 4;  // Marks the address of a watch.

  [[nodiscard]] bool take_edge() noexcept;
  static void publish(void* waiter) noexcept;
  void enter(std::uintptr_t entry) noexcept;
  bool deliver(std::uintptr_t entry, WaitOutcome outcome) noexcept;
  static bool tell(detail::IoWatch& watch) noexcept;
  void withdraw(std::uintptr_t entry, const detail::Atomic<bool>& let_go) noexcept;

  detail::Atomic<std::uintptr_t> word_{kIdle};
  detail::Atomic<std::int64_t> deadline_{Deadline::never().nanoseconds()};
  detail::Atomic<bool> drained_{false};
  detail::Atomic<bool> always_worth_trying_{false};
};

}  // namespace weft::io
