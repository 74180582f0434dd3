// The waist: the one door between what runs fibers and what fibers do.
//
// Everything above (sync, net, pool, channels, join handles) is built from these functions and
// sees neither workers nor queues; the scheduler implements them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/small_block.hpp>
#include <weft/detail/task.hpp>
#include <weft/spawn_options.hpp>

// The scheduler owns it; no code above the waist looks inside.
namespace weft::fibers {
struct Fiber;
}

namespace weft::detail {

struct ThreadSeat;  // Where a plain thread sleeps.

// A call to be made on the other side of the switch, once the parked fiber's registers are saved.
// Because a waiter is published only here, a wake can never come before its park.
// `argument` must not point into the parking stack, unless the call's last access to it comes
// before the waiter is published.
struct After {
  void (*call)(void* argument) noexcept;
  void* argument;
};

// Why a fiber is parked; shown in dumps.
enum class WaitReason : std::uint8_t {
  none,
  yield,
  sleep,
  join,
  mutex,
  shared_mutex_read,
  shared_mutex_write,
  condition_variable,
  wait_group,
  semaphore,
  latch,
  barrier,
  once,
  event,
  channel_send,
  channel_receive,
  select,
  select_socket,  // A select that the kernel may end, too.
  timer,
  pool_submit,
  pool_idle,
  pool_wait,
  readable,
  writable,
  blocking,
  stack,  // A fiber that has not started: the system gives it no stack.
};
[[nodiscard]] const char* to_string(WaitReason reason) noexcept;

// Names a fiber to be woken, or a plain thread that called the library. Each park is owed exactly
// one wake: the thread that takes the waiter out of its list (or wins its Claim) owes it.
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
  // Requires !is_thread().
  [[nodiscard]] fibers::Fiber* fiber() const noexcept {
    return reinterpret_cast<fibers::Fiber*>(bits_);
  }
  // Requires is_thread().
  [[nodiscard]] ThreadSeat* thread() const noexcept {
    return reinterpret_cast<ThreadSeat*>(bits_ & ~kThreadBit);
  }
  // Before a wake that comes soon: most likely the record is out of the cache.
  void prefetch() const noexcept { __builtin_prefetch(reinterpret_cast<void*>(bits_), 1); }
  [[nodiscard]] explicit operator bool() const noexcept { return bits_ != 0; }

 private:
  static constexpr std::uintptr_t kThreadBit = 1;
  explicit Waker(std::uintptr_t bits) noexcept : bits_(bits) {}
  std::uintptr_t bits_ = 0;
};

// Decides, once, which of several callers ends a wait: a notifier, the clock, a stop request.
// It lives on the waiting stack; a loser must not touch the waiter any more, except under the lock
// of the structure that holds it.
// Order
//   [claim]  try_claim (acq_rel) -> winner (acquire): what the winner wrote before is visible.
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

// Makes a new fiber runnable. From a fiber, it goes to the queue of the fiber's worker; from a
// plain thread, to the shared queue of the current runtime. Never parks.
// Throws std::system_error (Errc::no_runtime, too_many_fibers, invalid_stack_size) or
// std::bad_alloc; `task` has not been moved from then.
void spawn(Task&& task);
void spawn(Task&& task, const SpawnOptions& options);

// A new fiber that is parked before its first step: wake() starts it. Like any parked caller it
// must be woken exactly once. Never parks. Throws as spawn().
[[nodiscard]] Waker spawn_parked(Task&& task, WaitReason reason);

// The fiber or plain thread that is calling.
[[nodiscard]] Waker current() noexcept;

// Parks the caller: saves its registers, runs other fibers, and returns after wake(). `after`
// runs exactly once, on the other side. A plain thread runs `after` itself, then sleeps.
void park(After after, WaitReason reason) noexcept;

// Does the same as park(), but the clock takes part: at `deadline` it tries to win `claim`, and if
// it wins, wakes the caller. Returns claim.winner(). Every other thread that may wake the caller
// must win the claim first.
Claim::Winner park_until(After after, WaitReason reason, Deadline deadline, Claim& claim) noexcept;

// Instead of parking until a fiber of `target` (see Task::join_target) has ended: if one that was
// spawned here lately has not started, and the caller is a fiber whose stack has room for it, the
// caller is its parent until it ends: the child runs on the parent's stack, and the parent counts
// as waiting for `reason`. Returns false when there is none, or when it is time for others to run.
// A parent can do nothing until its child has ended: only for waits without deadline, for all of
// the target's fibers or for its only one.
bool run_in_place(const void* target, WaitReason reason) noexcept;

// Makes a parked fiber or thread runnable. Call it exactly once per park. Call it from any thread.
// Synchronizes with the return of the park.
void wake(Waker waker) noexcept;

// Returns how many fibers of the runtime that the caller would spawn to can run at once; 1 without
// one.
[[nodiscard]] unsigned concurrency() noexcept;

// Whether the fiber that runs on a worker has had its turn. In a cache line of the worker's own.
struct Turn {
  Atomic<bool> over{false};  // Relaxed: a hint; a fiber that sees it gives way once.
};

}  // namespace weft::detail

// The turn of the worker that the calling thread is; of plain threads one that is never over. Read
// by is_turn_over() only: a compiler may keep the address of a thread_local over a switch.
extern "C" __thread const weft::detail::Turn* weft_current_turn;

namespace weft::detail {

// Whether the calling fiber's turn is over.
#if defined(WEFT_MODEL)
[[nodiscard]] inline bool is_turn_over() noexcept { return false; }
#elif defined(__x86_64__)
[[nodiscard, gnu::always_inline]] inline bool is_turn_over() noexcept {
  const Turn* turn;
  bool is_over;
  // Volatile and with a clobber: every call reads the thread register anew.
  asm volatile(
      "movq weft_current_turn@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0\n\t"
      "cmpb $0, (%0)"
      : "=&r"(turn), "=@ccne"(is_over)
      :
      : "memory");
  return is_over;
}
#else
// Not inlined, so that its thread-pointer arithmetic cannot be shared between calls.
[[nodiscard]] bool is_turn_over() noexcept;
#endif

// Lets others run if the calling fiber's turn is over: see give_way_if_due(). Elsewhere nothing.
void give_way() noexcept;

// At the start of each call that may park, before anything is locked: a fiber that never has to
// wait lets others run once its turn, 1 ms, is over. One load of a line of the worker's own. A
// channel's calls look only when they do not park, and last. Not in calls that promise not to park
// (try_..., spawn, wake): these are made with a thread's mutex held, too.
[[gnu::always_inline]] inline void give_way_if_due() noexcept {
  if (is_turn_over()) [[unlikely]]
    give_way();
}

// Lets the fibers that are ready on this worker go first. A plain thread yields its processor.
void yield() noexcept;

// The values that the calling fiber or plain thread has in FiberLocals, newest first; see
// local_node.hpp. The reference is valid until the caller ends.
struct LocalNode;
[[nodiscard]] LocalNode*& locals() noexcept;
// Destroys them. Happens by itself when the caller ends.
void destroy_locals() noexcept;

// Returns whether the caller's runtime is being destroyed, which waits for its last fibers. False
// of a plain thread.
[[nodiscard]] bool runtime_is_ending() noexcept;
// `call` is made by each thread that begins to destroy a runtime, from when runtime_is_ending()
// there; so that fibers which wait for more to do can be told that there is none. One such call for
// the process: a later one takes its place. It must not park.
void on_runtime_end(void (*call)() noexcept) noexcept;

}  // namespace weft::detail
