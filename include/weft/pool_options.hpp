// The options and the statistics of a pool.
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
#include <weft/unlimited.hpp>

namespace weft {

class FiberPool;

// Selects what submit() does if every slot and every place in the queue is in use.
enum class OnFull : std::uint8_t {
  block,        // Park until there is room. FIFO, except for tasks whose keys are in use.
  reject,       // Return Errc::full.
  caller_runs,  // Run the task in submit() without a slot; block if paused or the task has a key.
  drop_oldest,  // Drop the task that has been queued longest, as Close::discard does, or several if
                // the new task is heavy. If tasks that wait for keys fill the queue, another such
                // task replaces the oldest. Callers parked in submit_until() do not get the freed
                // room. Return Errc::full if drops cannot free enough room, as after a resize().
};

// Selects what close() does with accepted tasks that have not started.
enum class Close : std::uint8_t {
  drain,    // The tasks still run.
  discard,  // The tasks are dropped; callers that wait for them get a cancellation error.
  cancel,   // Like discard; running tasks that take a stop token also get a stop request.
};

// Selects which idle worker gets the next task. The worker that has been idle longest always
// retires first.
enum class WakeOrder : std::uint8_t {
  lifo,  // The worker used most recently: its stack may be in the CPU cache. The others can retire.
  // The worker that has been idle longest, so the pool uses all workers in turn. This order suits
  // workers that hold, for example, a connection that must not stay unused for long.
  fifo,
};

struct PoolStats;

// Sets the function that receives a pool's statistics, and how often the pool calls it.
struct Tick {
  // The pause between two calls. With kNever, the only call reports the final statistics.
  std::chrono::nanoseconds period = kNever;
  std::function<void(const PoolStats&)> call = {};
};

namespace detail {

// Returns how many processors the affinity and the cgroup's quota allow. Reads both limits only
// once. A Runtime reads them again for its default number of workers.
[[nodiscard]] std::size_t processors() noexcept;

}  // namespace detail

struct PoolOptions {
  // The maximum number of running tasks, and of workers that hold a slot. kUnlimited is allowed.
  std::size_t capacity = detail::processors();
  // Selects when workers start.
  GrowPolicy grow = GrowPolicy::on_demand();
  // The number of workers that idle_timeout does not retire. At most `capacity`.
  std::size_t min_workers = 0;
  // Whether the constructor and reopen() start `min_workers` (required: at least 1) at once.
  bool prestart = false;
  // Whether the constructor and reopen() allocate the queue for all tasks that can be accepted.
  // `capacity` + `queue_capacity` may then be at most 1048576. The option allocates no workers.
  bool prealloc = false;
  // The maximum number of tasks that wait for a slot. 0: a task is accepted only if a slot is free.
  // Must be at least 1 with OnFull::drop_oldest.
  std::size_t queue_capacity = 0;
  OnFull on_full = OnFull::block;
  // The maximum number of callers parked in submit; further callers get Errc::too_many_waiting. At
  // least 1. Must not be set with OnFull::reject.
  std::size_t max_blocked = kUnlimited;
  // Whether a task frees its slot while it waits for its own pool, for example in submit() or
  // run(), or for a PoolTask or a group. If false, the user must prevent the deadlock in which all
  // slots hold tasks that wait for unstarted tasks.
  bool release_when_blocked = true;
  WakeOrder wake_order = WakeOrder::lifo;
  // A worker retires once it has been idle for one to two times this period. While the workers'
  // runtime is being destroyed, the workers retire within 20 ms; the pool may outlive the runtime.
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(1);
  // Receives each exception that a submitted task throws, and optionally a TaskInfo, before the
  // slot is freed. Several workers may call it at once. If it is empty or throws, the pool logs the
  // exception. An exception in run(), or in async() with a handle, goes to the waiting caller.
  ExceptionHandler on_exception = {};
  // Receives each line of the pool's log, without the line end. Several workers may call it at
  // once; each keeps its slot during the call. If it is empty or throws, the line goes to stderr.
  std::function<void(std::string_view)> logger = {};
  // Receives statistics in a fiber of the pool, one call at a time, until the pool is closed and
  // its tasks have ended. The last call receives the final statistics, and join() waits for this
  // call. A join() in `call` throws, as in a task of the pool. If `call` throws, the pool logs the
  // exception. If on_tick is set and its fiber cannot start, the constructor and reopen() throw.
  Tick on_tick = {};
  // Whether FiberPool::timings() measures how long tasks wait and run. If true, the pool reads the
  // clock three extra times for each task.
  bool timings = false;
  // The call that requests a stop runs close(Close::cancel); reopen() then has no effect.
  std::stop_token stop = {};
  // The parent of a sub-pool; it must outlive the sub-pool. The parent's workers run the sub-pool's
  // tasks in the parent's slots, at most `capacity` at once. A sub-pool has no workers, so
  // min_workers, prestart, idle_timeout, wake_order, grow and stack_size must keep their defaults.
  FiberPool* parent = nullptr;
  // The stack size of every worker, as in SpawnOptions::stack_size.
  std::size_t stack_size = 0;
  // The name of the pool in dumps and messages.
  std::string name = {};
};

// Holds a consistent snapshot of a pool. submitted + in_sub_pools always equals completed + failed
// + cancelled + busy + released + in_callers + queued.
struct PoolStats {
  std::size_t live = 0;  // Workers that hold a slot: busy + idle.
  std::size_t busy = 0;  // Workers that are running a task.
  // Workers that are waiting for a task, have been started or woken for a task, or have retired and
  // are destroying FiberLocals.
  std::size_t idle = 0;
  std::size_t released = 0;    // Tasks that have freed their slots while they wait for the pool.
  std::size_t in_callers = 0;  // Tasks that are running in submit() (OnFull::caller_runs).
  std::size_t queued = 0;      // Tasks accepted but not started.
  std::size_t blocked = 0;     // Callers parked in submit, for lack of room.
  // The number of drain tasks that `busy`, `released` and `queued` include. Each runs tasks of a
  // sub-pool, which counts these tasks in its own statistics.
  std::size_t in_sub_pools = 0;
  std::uint64_t submitted = 0;  // Tasks accepted so far.
  std::uint64_t completed = 0;  // Tasks that returned.
  std::uint64_t failed = 0;     // Tasks that threw.
  std::uint64_t cancelled = 0;  // Tasks that were accepted and will never run.
  std::uint64_t rejected = 0;   // Tasks refused, for any reason.
  std::uint64_t started = 0;    // Workers started so far.
  std::uint64_t retired = 0;    // Workers that have retired so far.
};

}  // namespace weft
