// Starts and stops the workers, and handles requests from plain threads.
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
#include "scheduler/shared.hpp"
#include "scheduler/sleep/quiescence.hpp"
#include "scheduler/upkeep/monitor.hpp"
#include "scheduler/worker/loop.hpp"

namespace weft::scheduler {

// Owns all workers, each with its thread, and the monitor. Handles requests from plain threads. The
// class Shared holds the state that the workers share.
class Scheduler {
 public:
  // Starts the worker threads; one idle worker at a time waits in events.wait(). `events` must
  // outlive the scheduler. Throws std::bad_alloc, std::system_error.
  Scheduler(SchedulerOptions options, EventSource& events);
  // Stops the workers. All fibers must have ended: call retire() first.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Returns the scheduler to which the calling plain thread would spawn, or nullptr. Only for
  // tests, because the scheduler may be destroyed at any moment; see Choice.
  [[nodiscard]] static Scheduler* current() noexcept;
  // Returns true if the process is the child of a fork, in which the scheduler has no threads.
  [[nodiscard]] bool lost_in_fork() const noexcept;

  // Any thread may call it. `caller` is the return address of the call. Throws the same errors as
  // detail::spawn().
  void spawn(detail::Task&& task, const SpawnOptions& options, const void* caller);
  // Makes a fiber that waits for make_ready(). Any thread may call it.
  [[nodiscard]] fibers::Fiber& spawn_parked(detail::Task&& task, detail::WaitReason reason);
  // Called by a plain thread before the destructor. Waits until all fibers have ended, prevents
  // plain threads from choosing this scheduler, and waits again for fibers that were spawned
  // meanwhile.
  void retire() noexcept;
  // Waits until all fibers have ended; returns false if the deadline passed first. Only plain
  // threads may call it.
  [[nodiscard]] bool wait_idle_until(Deadline deadline) noexcept {
    return wait_idle(deadline,
                     deadline.is_never() ? Quiescence::Then::waits_on : Quiescence::Then::acts);
  }
  // Does the same as wait_idle_until(), for a thread that writes a report at the deadline and waits
  // again. The search for deadlocks therefore treats this wait as a wait without a deadline.
  [[nodiscard]] bool wait_end_until(Deadline deadline) noexcept {
    return wait_idle(deadline, Quiescence::Then::waits_on);
  }
  // Called by the runtime's destructor before retire(); the destructor afterwards notifies the
  // fibers that wait for more work.
  void begin_end() noexcept { is_ending_.store(true, detail::relaxed); }
  [[nodiscard]] bool is_ending() const noexcept { return is_ending_.load(detail::relaxed); }
  [[nodiscard]] bool runs_on_this_thread() const noexcept;
  // Called, on any thread, when the event source begins to watch its first descriptor. Makes a
  // sleeping worker wait for events, unless the calling worker will soon check for them.
  void events_started() noexcept;

  [[nodiscard]] Shared& shared() noexcept { return shared_; }
  [[nodiscard]] const Shared& shared() const noexcept { return shared_; }
  [[nodiscard]] Monitor& monitor() noexcept { return monitor_; }

 private:
  bool wait_idle(Deadline deadline, Quiescence::Then then) noexcept;

  void make_worker();
  void start_thread(Loop& worker);
  void call_workers(unsigned wanted) noexcept;
  void stop() noexcept;
  [[nodiscard]] std::uint8_t size_class_for(std::size_t stack_size) const;
  void spawn_pinned(detail::Task&& task, std::uint8_t size_class, const void* caller);
  void spawn_from_outside(detail::Task&& task, std::uint8_t size_class, const void* caller);
  [[nodiscard]] fibers::Fiber& make_fiber(detail::Task&& task, std::uint8_t size_class,
                                          const void* caller);

  Shared shared_;
  const std::uint32_t forks_;  // The number of forks before this scheduler was created.
  // Relaxed: after the store, runtime::announce_end() notifies the waiting fibers under a lock, so
  // these fibers see the store.
  detail::Atomic<bool> is_ending_{false};
  // Every plain thread that spawns writes the following members.
  alignas(base::kCacheLine) detail::ThreadMutex outside_mutex_;  // Plain threads may block on it.
  fibers::FiberCache outside_fibers_ WEFT_GUARDED_BY(outside_mutex_);
  detail::Atomic<unsigned> next_home_{0};  // Relaxed: it only spreads fibers over the workers.
  // Each worker is created before its thread starts; all initial workers are created before the
  // first thread starts.
  std::vector<std::unique_ptr<Loop>> workers_;
  std::vector<std::thread> threads_;
  Monitor monitor_;
};

// Must be called before the process ends with a core file. Excludes unused parts of stacks from
// that file, for schedulers with SchedulerOptions::report_overflow. Takes no lock.
void make_core_small() noexcept;

}  // namespace weft::scheduler
