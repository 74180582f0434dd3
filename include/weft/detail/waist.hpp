// The waist: the only interface between the code that runs fibers and the code that fibers run.
//
// All layers above (sync, net, pool, channels, join handles) are built on these functions and have
// no access to workers or queues; the scheduler implements them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/small_block.hpp>
#include <weft/detail/task.hpp>
#include <weft/spawn_options.hpp>

// The scheduler owns it; code above the waist does not access it.
namespace weft::fibers {
struct Fiber;
}

namespace weft::detail {

struct ThreadSeat;  // Where a plain thread sleeps.

// A call to be made on the other side of the switch, once the parked fiber's registers are saved.
// Because a waiter is published only here, a wake can never come before its park. `argument` must
// not point into the parking stack, unless the call's last access to it precedes the publication of
// the waiter.
struct After {
  void (*call)(void* argument) noexcept;
  void* argument;
};

// The reason why a fiber is parked; shown in dumps.
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
  stack,  // A fiber that has not started, because the system provides no stack.
};
[[nodiscard]] const char* to_string(WaitReason reason) noexcept;

// Identifies a parked fiber, or a plain thread that called the library. Each park requires exactly
// one wake: the thread that removes the waiter from its list (or wins its Claim) must make it.
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
  // Called shortly before a wake: most likely the record is not in the cache.
  void prefetch() const noexcept { __builtin_prefetch(reinterpret_cast<void*>(bits_), 1); }
  [[nodiscard]] explicit operator bool() const noexcept { return bits_ != 0; }

 private:
  static constexpr std::uintptr_t kThreadBit = 1;
  explicit Waker(std::uintptr_t bits) noexcept : bits_(bits) {}
  std::uintptr_t bits_ = 0;
};

// Decides, once, which of several callers ends a wait: a notifier, the clock, a stop request. It is
// on the waiting stack; a loser must not access the waiter any more, except under the lock of the
// structure that contains it.
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
// plain thread, to the shared queue of the current runtime. Never parks. Throws std::system_error
// (Errc::no_runtime, too_many_fibers, invalid_stack_size) or std::bad_alloc; `task` is then
// unchanged.
void spawn(Task&& task);
void spawn(Task&& task, const SpawnOptions& options);

// Makes a new fiber that is parked before its first step: wake() starts it. Like any parked caller
// it must be woken exactly once. Never parks. Throws as spawn().
[[nodiscard]] Waker spawn_parked(Task&& task, WaitReason reason);

// Returns the calling fiber or plain thread.
[[nodiscard]] Waker current() noexcept;

// Parks the caller: saves its registers, runs other fibers, and returns after wake(). `after`
// runs exactly once, on the other side. A plain thread runs `after` itself, then sleeps.
void park(After after, WaitReason reason) noexcept;

// Does the same as park(), but at `deadline` the clock tries to win `claim`, and if it wins, wakes
// the caller. Returns claim.winner(). Every other thread that may wake the caller must win the
// claim first.
Claim::Winner park_until(After after, WaitReason reason, Deadline deadline, Claim& claim) noexcept;

// Replaces a park until a fiber of `target` (see Task::join_target) has ended. If a fiber that was
// recently spawned here has not started, and the caller is a fiber whose stack has enough room, the
// child runs on the caller's stack. The caller is its parent meanwhile, and counts as waiting for
// `reason`. Returns false if there is no such fiber, or if it is time for other fibers to run. A
// parent can do nothing until its child has ended. So this is only for waits without a deadline,
// for all of the target's fibers or for its only one.
bool run_in_place(const void* target, WaitReason reason) noexcept;

// Makes a parked fiber or thread runnable. Must be called exactly once per park. Any thread may
// call it. Synchronizes with the return of the park.
void wake(Waker waker) noexcept;

// Returns how many fibers can run at once in the runtime to which the caller would spawn; 1 without
// a runtime.
[[nodiscard]] unsigned concurrency() noexcept;

// Whether the turn of the fiber that runs on a worker is over. It is in a cache line of the
// worker's own.
// Relaxed throughout: hints.
struct Turn {
  // A caller that sees true calls give_way(). While locks note their owners, the flag stays set,
  // even for plain threads, and `has_ended` shows whether the turn is over.
  Atomic<bool> over{false};
  Atomic<bool> has_ended{false};
};

}  // namespace weft::detail

// The turn of the calling thread's worker; for plain threads, a turn that is never over. Only
// is_turn_over() reads it: a compiler may keep the address of a thread_local across a switch.
extern "C" __thread const weft::detail::Turn* weft_current_turn;

namespace weft::detail {

// Returns whether the calling fiber's turn is over.
#if defined(WEFT_MODEL)
[[nodiscard]] inline bool is_turn_over() noexcept { return false; }
#elif defined(__x86_64__)
[[nodiscard, gnu::always_inline]] inline bool is_turn_over() noexcept {
  const Turn* turn;
  bool is_over;
  // Volatile and with a clobber, so that every call reads the thread register again.
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

// Lets others run if the calling fiber's turn is over: see give_way_if_due(). Does nothing outside
// of fibers.
void give_way() noexcept;

// Called at the start of each call that may park, before anything is locked: a fiber that never has
// to wait lets others run once its turn, 1 ms, is over. It costs one load from a line of the
// worker's own. The calls of a channel check only when they do not park, and at their end. It must
// not be used in calls that promise not to park (try_..., spawn, wake), because these may be made
// with a thread's mutex held.
[[gnu::always_inline]] inline void give_way_if_due() noexcept {
  if (is_turn_over()) [[unlikely]]
    give_way();
}

// Whether locks note their owners, for reports of deadlocks: see lock_owner.hpp. Once set it stays
// set. The notes have the calling fiber's number; 0 is that of plain threads. A lock that may have
// several owners has no room for them: note_owner_of() notes the caller elsewhere, unless there are
// too many. Only an owner calls it, and forget_owner_of() before it ceases to be one; a caller that
// is not noted removes the notes of all.
#if defined(WEFT_MODEL)
[[nodiscard]] inline bool notes_lock_owners() noexcept { return false; }
[[nodiscard]] inline std::uint64_t number_for_notes() noexcept { return 0; }
inline void note_owner_of(const void* /*lock*/) noexcept {}
inline void forget_owner_of(const void* /*lock*/) noexcept {}
#else
[[nodiscard]] bool notes_lock_owners() noexcept;
void note_lock_owners() noexcept;
[[nodiscard]] std::uint64_t number_for_notes() noexcept;
void note_owner_of(const void* lock) noexcept;
void forget_owner_of(const void* lock) noexcept;
#endif

// Lets the fibers that are ready on this worker go first. A plain thread yields its processor.
void yield() noexcept;

// Returns the FiberLocal values of the calling fiber or plain thread, newest first; see
// local_node.hpp. The reference is valid until the caller ends.
struct LocalNode;
[[nodiscard]] LocalNode*& locals() noexcept;
// Destroys them. Happens automatically when the caller ends.
void destroy_locals() noexcept;

// Returns whether the caller's runtime is being destroyed, which waits for its last fibers. Returns
// false on a plain thread.
[[nodiscard]] bool runtime_is_ending() noexcept;
// Registers `call`, which each thread makes when it begins to destroy a runtime, once
// runtime_is_ending() is true there, to notify fibers that wait for more work. A process has one
// such call: a later one replaces it. It must not park.
void on_runtime_end(void (*call)() noexcept) noexcept;

}  // namespace weft::detail
