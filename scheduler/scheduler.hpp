// Starts and ends the workers, and serves plain threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/task.hpp>
#include <weft/detail/thread_mutex.hpp>
#include <weft/spawn_options.hpp>

#include "base/cache_line.hpp"
#include "fibers/fiber_store.hpp"
#include "scheduler/event_source.hpp"
#include "scheduler/options.hpp"
#include "scheduler/runtime_end.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/sleep/quiescence.hpp"
#include "scheduler/upkeep/monitor.hpp"
#include "scheduler/worker/loop.hpp"

namespace weft::scheduler {

// All workers, each with its thread, and the monitor; and what plain threads ask of them. What the
// workers share is Shared.
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
  // A plain thread calls it before the destructor. Waits until no fiber is left, lets no plain
  // thread choose this scheduler any more, and waits for what was spawned meanwhile.
  void retire() noexcept;
  // Waits until no fiber is left; false if the deadline passed first. A plain thread calls it.
  [[nodiscard]] bool wait_idle_until(Deadline deadline) noexcept {
    return wait_idle(deadline,
                     deadline.is_never() ? Quiescence::Then::waits_on : Quiescence::Then::acts);
  }
  // The same, for a thread that only reports at the deadline, and then waits on: the search for
  // deadlocks counts its wait as one without a deadline.
  [[nodiscard]] bool wait_end_until(Deadline deadline) noexcept {
    return wait_idle(deadline, Quiescence::Then::waits_on);
  }
  // The runtime's destructor calls it before retire(): it notifies fibers that wait for more to do.
  void begin_end() noexcept {
    is_ending_.store(true, detail::relaxed);
    announce_end();
  }
  [[nodiscard]] bool is_ending() const noexcept { return is_ending_.load(detail::relaxed); }
  [[nodiscard]] bool runs_on_this_thread() const noexcept;
  // The event source has been given something to watch, after nothing: a worker that sleeps should
  // sleep there. Any thread may call it.
  void events_started() noexcept;

  [[nodiscard]] Shared& shared() noexcept { return shared_; }
  [[nodiscard]] const Shared& shared() const noexcept { return shared_; }
  [[nodiscard]] Monitor& monitor() noexcept { return monitor_; }

 private:
  bool wait_idle(Deadline deadline, Quiescence::Then then) noexcept;

  void make_worker();
  void start_thread(Loop& worker);
  void call_spares(unsigned wanted) noexcept;
  void stop() noexcept;
  [[nodiscard]] std::uint8_t size_class_for(std::size_t stack_size) const;
  void spawn_pinned(detail::Task&& task, std::uint8_t size_class, const void* caller);
  void spawn_from_outside(detail::Task&& task, std::uint8_t size_class, const void* caller);
  [[nodiscard]] fibers::Fiber& make_fiber(detail::Task&& task, std::uint8_t size_class,
                                          const void* caller);

  Shared shared_;
  const std::uint32_t forks_;  // Before it was made.
  // Relaxed: what announce_end() calls notifies waiters under a lock.
  detail::Atomic<bool> is_ending_{false};
  // Every plain thread that spawns writes these.
  alignas(base::kCacheLine) detail::ThreadMutex outside_mutex_;  // Plain threads may block.
  fibers::FiberCache outside_fibers_ WEFT_GUARDED_BY(outside_mutex_);
  detail::Atomic<unsigned> next_home_{0};  // Relaxed: a turn.
  // Each worker is made before its thread starts, the usual ones before any does.
  std::vector<std::unique_ptr<Loop>> workers_;
  std::vector<std::thread> threads_;
  Monitor monitor_;
};

}  // namespace weft::scheduler
