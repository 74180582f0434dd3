// The waist: the only interface between the code that runs fibers and the code that fibers run.
//
// All layers above (sync, net, pool, channels, join handles) use these functions and have no access
// to workers or queues; the scheduler implements the functions. Five small headers declare the rest
// of the waist: turn.hpp, local_node.hpp, alarm.hpp, blocking.hpp and simulated_process.hpp.
// `tools/check_symbols` lists all functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/small_block.hpp>
#include <weft/detail/task.hpp>
#include <weft/detail/wait_reason.hpp>
#include <weft/spawn_options.hpp>

// The scheduler owns the class Fiber; code above the waist does not access its members.
namespace weft::fibers {
struct Fiber;
}

namespace weft::detail {

struct ThreadSeat;  // The object on which a plain thread sleeps.

// A function call that the worker makes after the switch, once the parked fiber's registers are
// saved. Only this call makes a waiter visible to other threads, so a wake can never precede the
// park. `argument` may point into the parking caller's stack only if the call does not use it
// after the waiter has become visible.
struct After {
  void (*call)(void* argument) noexcept;
  void* argument;
};

// Identifies a parked fiber, or a plain thread that called the library. Each park requires exactly
// one wake: the thread that removes the waiter from its list (or wins its Claim) must call wake().
class Waker {
 public:
  Waker() noexcept = default;
  [[nodiscard]] static Waker of_fiber(fibers::Fiber* fiber) noexcept {
    return Waker(reinterpret_cast<std::uintptr_t>(fiber));
  }
  [[nodiscard]] static Waker of_thread(ThreadSeat* seat) noexcept {
    return Waker(reinterpret_cast<std::uintptr_t>(seat) | kThreadBit);
  }
  [[nodiscard]] bool is_thread() const noexcept { return (bits_ & kThreadBit) != 0; }
  // Returns the fiber. Requires !is_thread().
  [[nodiscard]] fibers::Fiber* fiber() const noexcept {
    return reinterpret_cast<fibers::Fiber*>(bits_);
  }
  // Returns the seat of the plain thread. Requires is_thread().
  [[nodiscard]] ThreadSeat* thread() const noexcept {
    return reinterpret_cast<ThreadSeat*>(bits_ & ~kThreadBit);
  }
  // Prefetches the fiber's record, which is probably not in the cache. Called just before a wake.
  void prefetch() const noexcept { __builtin_prefetch(reinterpret_cast<void*>(bits_), 1); }
  [[nodiscard]] explicit operator bool() const noexcept { return bits_ != 0; }

 private:
  static constexpr std::uintptr_t kThreadBit = 1;
  explicit Waker(std::uintptr_t bits) noexcept : bits_(bits) {}
  std::uintptr_t bits_ = 0;
};

// Decides once which party ends a wait: a notifier, the clock or a stop request. The claim is on
// the waiting caller's stack. A loser accesses a waiter in a list only under the lock of that list.
// Order
//   [claim]  try_claim() sets the winner (acq_rel) -> winner() loads it (acquire): the caller of
//       winner() then sees all writes that preceded the successful try_claim().
class Claim {
 public:
  enum Winner : std::uint32_t { kNobody, kNotifier, kClock, kStop };

  [[nodiscard]] bool try_claim(Winner who) noexcept {
    std::uint32_t expected = kNobody;
    return winner_.compare_exchange_strong(expected, who, acq_rel, relaxed);  // [claim]
  }
  [[nodiscard]] Winner winner() const noexcept {
    return static_cast<Winner>(winner_.load(acquire));  // [claim]
  }

 private:
  Atomic<std::uint32_t> winner_{kNobody};
};

// Creates a runnable fiber. The fiber is added to the queue of the calling worker or, if the caller
// is a plain thread, to the inject queue of the current runtime. Never parks. Throws
// std::system_error (Errc::no_runtime, too_many_fibers, invalid_stack_size) or std::bad_alloc;
// `task` is then unchanged, unless options.name is set. A pinned fiber goes to its worker's queue.
void spawn(Task&& task);
void spawn(Task&& task, const SpawnOptions& options);

// Creates a fiber that is parked before its first step: wake() starts it. The caller must arrange
// for exactly one wake() of this fiber. Never parks. Throws what spawn() throws.
[[nodiscard]] Waker spawn_parked(Task&& task, WaitReason reason);

// Returns the calling fiber or plain thread.
[[nodiscard]] Waker current() noexcept;

// Parks the caller: saves its registers, runs other fibers, and returns after wake(). `after` runs
// exactly once, after the switch. A plain thread runs `after` itself, then sleeps.
void park(After after, WaitReason reason) noexcept;

// Parks as park() does, but the runtime wakes the caller at `deadline` unless another thread has
// won `claim` by then. Returns claim.winner(). A thread must win the claim before it wakes the
// caller.
Claim::Winner park_until(After after, WaitReason reason, Deadline deadline, Claim& claim) noexcept;

// Parks the caller until the deadline. If the deadline has already passed, the caller still parks.
// A sleep costs less than park_until(), but no other thread may wake the caller.
void sleep_until(Deadline deadline) noexcept;

// Runs a fiber to its end on the caller's stack, so that the caller need not park to wait for it.
// That fiber's Task::join_target() is `target`. It was recently spawned on this worker, and has not
// started. During the run, the caller is the fiber's parent, and counts as waiting for `reason`.
// Returns false if no such fiber can run here, or if the caller should park to let others run. The
// caller cannot continue until the fiber has ended. Therefore, only a wait without a deadline may
// call this function, and only if it waits for every fiber of the target.
bool run_in_place(const void* target, WaitReason reason) noexcept;

// Makes a parked fiber or thread runnable. Wakers must call it exactly once per park. Any thread
// may call it. The call synchronizes with the return from park().
void wake(Waker waker) noexcept;

// Lets other ready fibers of this worker run first. A plain thread yields its processor.
void yield() noexcept;

}  // namespace weft::detail
