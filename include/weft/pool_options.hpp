// The options of a pool, and the numbers that it tells.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <weft/deadline.hpp>
#include <weft/grow_policy.hpp>
#include <weft/pool_hooks.hpp>

namespace weft {

inline constexpr std::size_t kUnlimited = SIZE_MAX;

class FiberPool;

// The answer of submit() when every slot and every place in the queue is taken.
enum class OnFull : std::uint8_t {
  block,        // Park until there is room; first come, first served.
  reject,       // Return Errc::full.
  caller_runs,  // Run the task in the call of submit(), outside the pool's capacity.
  drop_oldest,  // Drop the task that has been queued longest, as Close::discard would. Callers that
                // are parked in submit_until() do not get its place. Errc::full if nothing is
                // queued and yet there is no room: after resize(), while more run than the new
                // capacity.
};

// The fate of tasks that have been accepted but not started, at a close().
enum class Close : std::uint8_t {
  drain,    // They still run.
  discard,  // They are dropped; a wait for one of them returns that it was cancelled.
  cancel,   // Does the same as discard; and requests a stop of running tasks that have taken a
            // token.
};

// Which of several idle workers gets the next task. The workers that are retired are always the
// ones that have been idle longest.
enum class WakeOrder : std::uint8_t {
  lifo,  // The one that was used last: its stack is in the cache, and the others can be retired.
  fifo,  // The one that has been idle longest: all are used in turn. For workers that each have
         // something that must not be left alone for long, such as a connection. As long as there
         // is work for one, none is idle long enough to be retired.
};

struct PoolStats;

// The receiver of a pool's numbers, and how often it is called.
struct Tick {
  // From the return of one call to the next. kNever: only the last one is made.
  std::chrono::nanoseconds period = kNever;
  std::function<void(const PoolStats&)> call = {};
};

namespace detail {

// Returns how many processors the process may use, by its affinity and its cgroup's quota: as many
// as a Runtime has workers by default. It is determined once: reading the kernel's files takes
// longer than all else that a short-lived pool does.
[[nodiscard]] std::size_t processors() noexcept;

}  // namespace detail

struct PoolOptions {
  // The most tasks that run at once, and the most workers that live. kUnlimited is allowed.
  std::size_t capacity = detail::processors();
  // When workers are started.
  GrowPolicy grow = GrowPolicy::on_demand();
  // This many workers are never retired for being idle. At most `capacity`.
  std::size_t min_workers = 0;
  // Start `min_workers` workers in the constructor and in reopen(), rather than on demand.
  bool prestart = false;
  // Allocate the queue in the constructor and in reopen(), for all tasks that can be accepted: then
  // no submit() allocates for it, up to the capacity that the pool was made with. `capacity` and
  // `queue_capacity` may be 1048576 together. Workers are a matter of `prestart`.
  bool prealloc = false;
  // Tasks that may wait for a slot. 0: a task is accepted only when a slot is free for it.
  // At least 1 with OnFull::drop_oldest.
  std::size_t queue_capacity = 0;
  OnFull on_full = OnFull::block;
  // The most callers that may be parked in submit at once; more get Errc::too_many_waiting. Not
  // with OnFull::reject.
  std::size_t max_blocked = kUnlimited;
  // A task that waits for its own pool, in submit(), run(), a PoolTask or a group, gives its
  // slot back meanwhile. If not, it keeps its slot, as in most pools: the number of tasks that have
  // begun and not ended has a bound then. But it is up to the user that not all slots are taken by
  // tasks that wait for tasks which have not begun: they would wait forever.
  bool release_when_blocked = true;
  WakeOrder wake_order = WakeOrder::lifo;
  // A worker is retired when it has been idle for this long, and at most twice as long. A pool may
  // outlive the runtime of its workers: once that is being destroyed, they are retired after 20 ms
  // at most, including workers that min_workers keeps.
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(1);
  // Receives what leaves a submitted task, on the worker, while the task's slot is still held.
  // Takes the exception_ptr, and a TaskInfo if it likes. Called from several workers at once.
  // Empty: one line for the logger. May throw: that too costs one line and no worker. Exceptions
  // of async() and run() go to the waiter instead.
  ExceptionHandler on_exception = {};
  // Receives each line that the pool has to say, without its end; from several workers at once, and
  // while a task's slot is held. Empty, or if it throws: the line goes to stderr.
  std::function<void(std::string_view)> logger = {};
  // Calls are made by a fiber of the pool's own, one at a time, from when it is opened until it is
  // closed and its tasks have ended, and once more then, with the final numbers: join() waits for
  // that, and throws inside a call as inside a task. An exception that a call throws is a line for
  // the logger. With one, the constructor and reopen() throw what weft::go() throws.
  Tick on_tick = {};
  // Measure how long tasks wait and run, for FiberPool::timings(). It takes three looks at the
  // clock a task. If not, none is taken.
  bool timings = false;
  // A stop request here is a close(Close::cancel), in the call that makes the request; and the pool
  // stays closed then.
  std::stop_token stop = {};
  // Makes it a sub-pool of this one, which must outlive it: its tasks run in the parent's slots, on
  // the parent's workers, never more than `capacity` of them and never more than the parent has
  // room for. It has no workers of its own; so min_workers, prestart, idle_timeout, wake_order,
  // grow and stack_size must be left as they are.
  FiberPool* parent = nullptr;
  // SpawnOptions::stack_size of every worker.
  std::size_t stack_size = 0;
  // Shown in dumps and in messages.
  std::string name = {};
};

// One consistent reading of a pool.
// Always: submitted + in_sub_pools = completed + failed + cancelled + busy + released + in_callers
// + queued.
struct PoolStats {
  std::size_t live = 0;  // Workers that hold a slot: busy + idle.
  std::size_t busy = 0;  // Workers that run a task.
  // Workers that wait for a task, have been woken for one, or are retired and destroy what their
  // tasks have left.
  std::size_t idle = 0;
  std::size_t released = 0;    // Tasks that wait on their own pool and have given their slot back.
  std::size_t in_callers = 0;  // Tasks that run in submit() (OnFull::caller_runs).
  std::size_t queued = 0;      // Tasks accepted and not started.
  std::size_t blocked = 0;     // Callers parked in submit, for lack of room.
  // Of busy, released and queued: what runs tasks of sub-pools, or will. These tasks are counted by
  // their own pool.
  std::size_t in_sub_pools = 0;
  std::uint64_t submitted = 0;  // Tasks ever accepted.
  std::uint64_t completed = 0;  // Tasks that returned.
  std::uint64_t failed = 0;     // Tasks that threw.
  std::uint64_t cancelled = 0;  // Tasks that were accepted and will never run.
  std::uint64_t rejected = 0;   // Refusals, for whatever reason.
  std::uint64_t started = 0;    // Workers ever started.
  std::uint64_t retired = 0;    // Workers that have given up their slot for good.
};

}  // namespace weft
