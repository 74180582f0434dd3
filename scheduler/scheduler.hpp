// All workers and what they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/task.hpp>
#include <weft/detail/thread_mutex.hpp>
#include <weft/spawn_options.hpp>

#include "base/cache_line.hpp"
#include "fibers/fiber_store.hpp"
#include "fibers/overflow.hpp"
#include "fibers/stack_pool.hpp"
#include "scheduler/blocking_pool.hpp"
#include "scheduler/deadlock.hpp"
#include "scheduler/event_source.hpp"
#include "scheduler/idle_set.hpp"
#include "scheduler/inject_queue.hpp"
#include "scheduler/monitor.hpp"
#include "scheduler/runtime_end.hpp"
#include "scheduler/simulation.hpp"
#include "scheduler/stack_shortage.hpp"
#include "scheduler/watch.hpp"
#include "scheduler/worker.hpp"

namespace weft::scheduler {

class Scheduler;

struct SchedulerOptions {
  unsigned workers = 1;
  unsigned size_class = fibers::kDefaultSizeClass;
  std::size_t max_fibers = 0;
  std::function<void(std::exception_ptr)> on_exception;
  bool report_overflow = true;
  std::size_t max_blocking_threads = 512;
  // A worker calls it, outside of fibers, once no fiber will ever run again. Empty: none looks.
  std::function<void(Scheduler&)> on_deadlock = {};
  MonitorOptions monitor = {};
  // Makes the decisions of an only worker. Null: the rules do.
  detail::Simulation* simulation = nullptr;
  // No fiber is spawned while one waits for a stack.
  bool refuses_without_stacks = false;
};

// Order
//   [outside]   spawn_from_outside counts (release) -> live loads (acquire), as [count] in Worker.
//   [spares]    start_worker publishes a worker by its count (release) -> workers() loads it
//               (acquire): it is complete.
//   [drain]     wait_idle_until raises draining_; full_fence; live() is read, against: a worker
//               counts its last fiber; full_fence; draining_ is read. One sees the other.
//   [decay]     decay_some leaves (release) -> the next one enters (acquire): what it noted.
class Scheduler {
 public:
  // Starts the worker threads, which sleep in `events`; it outlives the scheduler. Throws
  // std::system_error.
  Scheduler(SchedulerOptions options, EventSource& events);
  // Stops the workers. No fiber may be left: retire() first.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The one to which the calling plain thread would spawn, or nullptr. Nothing keeps it alive: for
  // tests; see Choice.
  [[nodiscard]] static Scheduler* current() noexcept;
  // The process is the child of a fork, in which the scheduler has no threads.
  [[nodiscard]] bool lost_in_fork() const noexcept;

  // Any thread may call it. `caller` is where the call returns to. Throws as detail::spawn() does.
  void spawn(detail::Task&& task, const SpawnOptions& options, const void* caller);
  // Makes a fiber that waits to be made ready. Any thread may call it.
  [[nodiscard]] fibers::Fiber& spawn_parked(detail::Task&& task, detail::WaitReason reason);
  // Any thread that is not one of its workers may call it.
  void make_ready_from_outside(fibers::Fiber& fiber) noexcept;

  // A plain thread calls it before the destructor. Waits until no fiber is left, lets no plain
  // thread choose this scheduler any more, and waits for what was spawned meanwhile.
  void retire() noexcept;
  // Waits until no fiber is left; false if the deadline passed first. A plain thread calls it.
  [[nodiscard]] bool wait_idle_until(Deadline deadline) noexcept {
    return wait_idle(deadline, deadline.is_never() ? Then::waits_on : Then::acts);
  }
  // The same, for a thread that only reports at the deadline, and then waits on: the search for
  // deadlocks counts its wait as one without a deadline.
  [[nodiscard]] bool wait_end_until(Deadline deadline) noexcept {
    return wait_idle(deadline, Then::waits_on);
  }
  // The runtime's destructor calls it before retire(): it notifies fibers that wait for more to do.
  void begin_end() noexcept {
    is_ending_.store(true, detail::relaxed);
    announce_end();
  }
  [[nodiscard]] bool is_ending() const noexcept { return is_ending_.load(detail::relaxed); }
  // Fibers spawned and not finished. Exact when nothing runs.
  [[nodiscard]] std::uint64_t live() const noexcept;
  [[nodiscard]] std::uint64_t spawned() const noexcept;
  [[nodiscard]] bool runs_on_this_thread() const noexcept;
  // Gives back the memory of free stacks and records in the shared stores. Any thread may call it.
  void trim() noexcept;
  // One step of it; true when more is left to do.
  bool trim_some() noexcept;
  [[nodiscard]] bool has_surplus_hint() const noexcept;
  // Gives back a little of what has been unused for a while, alongside other work. What has lain in
  // the shared stores for a whole period of half a second is given back in the course of the next
  // one, or of some if it is very much. `now` is in nanoseconds. Takes some milliseconds at most;
  // true if more is due already. Any thread may call it.
  bool decay_some(std::int64_t now) noexcept;

  // For workers, and sleep_protocol.hpp.
  [[nodiscard]] bool has_outside_work_hint() const noexcept { return !inject_queue_.empty_hint(); }
  [[nodiscard]] bool has_work_hint() const noexcept;
  // Descriptors, or timers of any worker.
  [[nodiscard]] bool has_events_to_watch() const noexcept;
  // When a sleeper is to see to a timer of a worker that is awake, and does not get to it.
  [[nodiscard]] Deadline earliest_timer_of_awake() const noexcept;
  [[nodiscard]] bool watches_events() const noexcept { return events_.watches_anything(); }
  [[nodiscard]] bool stopping() const noexcept;
  void worker_sleeps() noexcept;

  // All workers that exist, spares too; new ones may be added at the end.
  [[nodiscard]] std::span<const std::unique_ptr<Worker>> workers() const noexcept {
    return {workers_.get(), worker_count_.load(detail::acquire)};  // [spares]
  }
  [[nodiscard]] Worker& worker(unsigned index) noexcept { return *workers_[index]; }
  // Returns the home of a fiber that is pinned and has started.
  [[nodiscard]] Worker& home_of(const fibers::Fiber& fiber) noexcept {
    return worker(fiber.stack.load(detail::relaxed)->home);
  }
  [[nodiscard]] unsigned most_workers() const noexcept {
    return options_.workers + (options_.monitor.enabled ? options_.monitor.spares : 0);
  }
  [[nodiscard]] bool is_spare(unsigned index) const noexcept { return index >= options_.workers; }
  // Whether thieves may come to a worker's queue from the start.
  [[nodiscard]] bool queues_are_open() const noexcept { return queues_are_open_; }
  // Asleep, or a spare that rests.
  [[nodiscard]] bool is_asleep(const Worker& worker) const noexcept;
  [[nodiscard]] bool all_are_asleep() const noexcept;
  // How many workers are awake; may be stale when it returns.
  [[nodiscard]] unsigned awake_hint() const noexcept {
    return options_.workers + spares_at_work() - idle_.asleep_hint();
  }
  // Whether each processor has a worker that is awake, so that one more would take turns with
  // them. Should one of these be blocked, the monitor sees to it.
  [[nodiscard]] bool is_crowded() const noexcept { return awake_hint() >= processors_; }
  // Counts the threads of the scheduler: its workers, and the monitor.
  [[nodiscard]] std::size_t threads() const noexcept;

  // The monitor calls it: `wanted` spares are to work, as far as threads can be had.
  void want_spares(unsigned wanted) noexcept;
  // Relaxed: the monitor counts up, spares that leave count down.
  [[nodiscard]] unsigned spares_at_work() const noexcept {
    return spares_at_work_.load(detail::relaxed);
  }
  // A spare calls these: whether one should leave; whether this one does.
  [[nodiscard]] bool wants_spare_to_leave() const noexcept {
    return spares_at_work_.load(detail::relaxed) > spares_wanted_.load(detail::relaxed);
  }
  [[nodiscard]] bool lets_spare_leave() noexcept;

  [[nodiscard]] const SchedulerOptions& options() const noexcept { return options_; }
  // The time by the clock of its fibers.
  [[nodiscard]] std::int64_t now() const noexcept {
    return options_.simulation != nullptr ? options_.simulation->now()
                                          : Deadline::now_nanoseconds();
  }
  // The sequence number of this scheduler in the process, which starts at 0.
  [[nodiscard]] unsigned number() const noexcept { return number_; }
  [[nodiscard]] fibers::StackDepot& stacks() noexcept { return stacks_; }
  [[nodiscard]] fibers::FiberStore& fibers() noexcept { return fibers_; }
  [[nodiscard]] InjectQueue& inject_queue() noexcept { return inject_queue_; }
  [[nodiscard]] IdleSet& idle() noexcept { return idle_; }
  [[nodiscard]] const IdleSet& idle() const noexcept { return idle_; }
  [[nodiscard]] Watch& watch() noexcept { return watch_; }
  [[nodiscard]] Monitor& monitor() noexcept { return monitor_; }
  [[nodiscard]] DeadlockWatch& deadlock_watch() noexcept { return deadlock_watch_; }
  [[nodiscard]] EventSource& events() noexcept { return events_; }
  // The event source has been given something to watch, after nothing: a worker that sleeps should
  // sleep there. Any thread may call it.
  void events_started() noexcept;
  [[nodiscard]] StackShortage& stack_shortage() noexcept { return stack_shortage_; }
  [[nodiscard]] BlockingPool& blocking() noexcept { return blocking_; }

  [[noreturn]] void throw_too_many_fibers() const;

 private:
  // What a thread does at the end of its wait, while fibers live.
  enum class Then : std::uint8_t { acts, waits_on };

  bool wait_idle(Deadline deadline, Then then) noexcept;

  void start_worker();
  void stop() noexcept;
  [[nodiscard]] std::uint8_t size_class_for(std::size_t stack_size) const;
  void spawn_pinned(detail::Task&& task, std::uint8_t size_class, const void* caller);
  void spawn_from_outside(detail::Task&& task, std::uint8_t size_class, const void* caller);
  [[nodiscard]] fibers::Fiber& make_fiber(detail::Task&& task, std::uint8_t size_class,
                                          const void* caller);

  const SchedulerOptions options_;
  const unsigned number_;
  const bool queues_are_open_;
  const unsigned processors_;
  fibers::StackDepot stacks_;
  fibers::FiberStore fibers_;
  InjectQueue inject_queue_;
  EventSource& events_;
  IdleSet idle_;
  DeadlockWatch deadlock_watch_{*this};
  StackShortage stack_shortage_{*this};
  Watch watch_;
  // Read by every searcher and sleeper, and hardly ever written.
  alignas(base::kCacheLine) detail::Atomic<bool> stopping_{false};
  detail::Atomic<std::uint32_t> draining_{0};  // Threads in wait_idle_until().
  // Relaxed: what announce_end() calls notifies waiters under a lock.
  detail::Atomic<bool> is_ending_{false};
  detail::Atomic<std::uint32_t> drain_epoch_{0};
  // Every plain thread that spawns or wakes writes these.
  alignas(base::kCacheLine) detail::ThreadMutex outside_mutex_;  // Plain threads may block.
  fibers::FiberCache outside_fibers_ WEFT_GUARDED_BY(outside_mutex_);
  detail::Atomic<std::uint64_t> spawned_outside_{0};
  detail::Atomic<unsigned> next_home_{0};  // Relaxed: a turn.
  detail::Atomic<bool> decaying_{false};   // Guards the next four.
  std::int64_t decay_period_began_ = 0;
  std::int64_t last_decay_ = 0;
  std::int64_t stacks_due_ = 0;  // Chains, when the period began.
  std::int64_t fibers_due_ = 0;
  const std::uint32_t forks_;                  // Before it was made.
  detail::Atomic<std::uint32_t> visitors_{0};  // Other threads inside; see scheduler.cpp.
  // An array of most_workers(), filled from the front.
  alignas(base::kCacheLine) std::unique_ptr<std::unique_ptr<Worker>[]> workers_;
  detail::Atomic<std::size_t> worker_count_{0};
  detail::Atomic<unsigned> spares_at_work_{0};
  detail::Atomic<unsigned> spares_wanted_{0};
  std::vector<std::thread> threads_;
  Monitor monitor_;
  BlockingPool blocking_;  // Ends first: its threads use all the others.
};

}  // namespace weft::scheduler
