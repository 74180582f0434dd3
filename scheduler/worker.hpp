// One OS thread that runs fibers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>
#include <weft/detail/task.hpp>
#include <weft/detail/waist.hpp>

#include "base/cache_line.hpp"
#include "base/parker.hpp"
#include "base/random.hpp"
#include "fibers/fiber_store.hpp"
#include "fibers/stack_pool.hpp"
#include "fibers/switch.hpp"
#include "scheduler/block_cache.hpp"
#include "scheduler/deadlock.hpp"
#include "scheduler/overflow_queue.hpp"
#include "scheduler/run_queue.hpp"
#include "scheduler/timers.hpp"

namespace weft::scheduler {

class Scheduler;

// What one worker has done. Written by the worker, read by anyone.
// Order
//   [count]  add_one stores (release) -> Scheduler::live loads by get (acquire): a fiber that is
//            counted as finished was counted as spawned before.
class Counter {
 public:
  void add_one() noexcept {
    // Relaxed load: the worker is the only writer.
    value_.store(value_.load(detail::relaxed) + 1, detail::release);  // [count]
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(detail::acquire);  // [count]
  }

 private:
  detail::Atomic<std::uint64_t> value_{0};
};

struct WorkerCounters {
  Counter spawned;
  Counter finished;
  Counter switches;
  Counter steals;
  Counter sleeps;
};

// Runs fibers one after the other: the one woken last (the slot), then its queue, then what did
// not fit there, then what came from outside, then what it can steal; else it sleeps.
// A fiber that parks or ends goes straight to the next one if that is at hand; for everything
// else (fairness, timers, polling, stealing, sleeping) it switches to the idle stack, the one the
// thread was born with.
// Owner: all members belong to the worker's thread unless they say otherwise.
class Worker {
 public:
  Worker(Scheduler& scheduler, unsigned index);
  ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The thread's whole life. Returns when the scheduler stops.
  void run() noexcept;

  // By the fiber that runs here. `caller` is where the user's call returns to, for dumps.
  // Throws std::bad_alloc, std::system_error (Errc::too_many_fibers); nothing is spawned then.
  void spawn(detail::Task&& task, const void* caller) {
    spawn(std::move(task), default_size_class_, caller);
  }
  void spawn(detail::Task&& task, std::uint8_t size_class, const void* caller);
  // A fiber that make_ready() starts.
  [[nodiscard]] fibers::Fiber& spawn_parked(detail::Task&& task, detail::WaitReason reason);
  void park(detail::After after, detail::WaitReason reason) noexcept;
  void yield() noexcept;
  // As detail::run_in_place(), by the fiber that runs here.
  [[nodiscard]] bool run_in_place(const void* family, detail::WaitReason reason) noexcept;
  [[nodiscard]] BlockCache& blocks() noexcept { return blocks_; }
  [[nodiscard]] fibers::Fiber* current_fiber() noexcept { return current_; }

  // On this worker's thread: queues a fiber that nobody else refers to. make_ready: it runs next,
  // because what it waits for is hot. make_ready_last: after all that is ready.
  void make_ready(fibers::Fiber& fiber) noexcept;
  void make_ready_last(fibers::Fiber& fiber) noexcept;
  void add_timer(Timer& timer, Deadline deadline) noexcept { timers_.add(timer, deadline); }
  // Of a fiber that is parked and that nothing but the clock wakes.
  void add_sleep(Timer& timer, fibers::Fiber& fiber, Deadline deadline) noexcept {
    timers_.add_sleep(timer, fiber, deadline);
  }

  // From any thread.
  void unpark() noexcept;
  void unpark_for_work() noexcept;
  [[nodiscard]] bool has_work_hint() const noexcept;
  [[nodiscard]] Deadline next_timer_hint() const noexcept { return timers_.next_hint(); }
  [[nodiscard]] Scheduler& scheduler() noexcept { return scheduler_; }
  [[nodiscard]] const WorkerCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] std::uint64_t wakeups() const noexcept { return wakeups_.load(detail::relaxed); }

  // Where every stack begins.
  static void stack_main(fibers::Arrival arrival);

 private:
  // Every so many decisions a worker looks at what it would otherwise never get to: the shared
  // queue, old overflow, timers and descriptors. A prime, so that it does not fall into step with
  // a program's own period.
  static constexpr std::uint32_t kFairnessPeriod = 61;

  // What a thief remembers of a victim, to tell work that waits from work that is being done.
  struct Look {
    std::int64_t time = 0;
    std::uint32_t head = 0;
    std::uint64_t switches = 0;
    fibers::Fiber* slot = nullptr;
  };

  // worker.cpp: from fiber to fiber.
  // Always inlined, as each fiber's start and end comes here.
  [[nodiscard, gnu::always_inline]] fibers::Fiber& make_fiber(detail::Task&& task,
                                                              std::uint8_t size_class,
                                                              const void* caller);
  [[nodiscard, gnu::always_inline]] fibers::Fiber* take_next_at_hand() noexcept;
  [[nodiscard]] fibers::Fiber* take_next() noexcept;
  [[nodiscard, gnu::always_inline]] fibers::Fiber* take_slot() noexcept;
  [[nodiscard]] fibers::Stack* resume_point(fibers::Fiber& next) noexcept;
  void leave(fibers::Stack& from, fibers::Fiber* next, detail::After after) noexcept;
  void bind(fibers::Fiber& fiber, fibers::Stack& stack) noexcept;
  [[nodiscard]] fibers::Fiber* take_guest(const void* family) noexcept;
  static void host(fibers::Fiber& host, fibers::Fiber& guest) noexcept;
  void retire(fibers::Fiber& fiber) noexcept;
  [[nodiscard]] static fibers::Fiber& end_fiber(fibers::Fiber& fiber, fibers::Stack& here) noexcept;
  void run_task(fibers::Fiber& fiber);
  void push(fibers::Fiber& fiber);
  void spill();
  void announce_work() noexcept;

  // worker_idle.cpp: on the idle stack.
  [[nodiscard]] fibers::Fiber* find_work() noexcept;
  void take_fair_share() noexcept;
  void refill() noexcept;
  void run_events() noexcept;
  void wake_sleepers(fibers::Fiber* first) noexcept;
  [[nodiscard]] std::size_t run_timers(Timers& timers, std::int64_t now) noexcept;
  [[nodiscard]] std::size_t run_overdue_timers() noexcept;
  void enter(fibers::Fiber& fiber) noexcept;
  void out_of_stacks(fibers::Fiber& fiber) noexcept;
  [[nodiscard]] bool sleep() noexcept;
  [[nodiscard]] bool block_until(Deadline deadline) noexcept;
  [[nodiscard]] Deadline sleep_limit(bool napped) noexcept;
  void give_memory_back() noexcept;
  [[nodiscard]] bool report_deadlock() noexcept;

  // worker_search.cpp: as a thief.
  [[nodiscard]] fibers::Fiber* search() noexcept;
  [[nodiscard]] fibers::Fiber* search_for_a_while() noexcept;
  void end_search() noexcept;
  [[nodiscard]] fibers::Fiber* look_everywhere(std::int64_t now) noexcept;
  [[nodiscard]] fibers::Fiber* steal_from(Worker& victim, Look& look, std::int64_t now) noexcept;
  void adopt_chain(fibers::Fiber* chain) noexcept;
  [[nodiscard]] bool others_make_progress() noexcept;

  // Read and written by thieves too.
  RunQueue queue_;
  // The fiber woken last. Relaxed loads only look; whoever takes it exchanges.
  // Order
  //   [slot]  make_ready stores or exchanges (release) -> whoever takes exchanges (acquire).
  alignas(base::kCacheLine) detail::Atomic<fibers::Fiber*> slot_{nullptr};
  OverflowQueue overflow_;
  Timers timers_;
  base::Parker parker_;
  detail::Atomic<std::uint64_t> wakeups_{0};  // Relaxed: statistics.

  alignas(base::kCacheLine) Scheduler& scheduler_;
  const unsigned index_;
  const bool has_thieves_;  // Other workers, who may take from queue_ and slot_.
  const std::uint8_t default_size_class_;
  fibers::ThreadState thread_{};
  fibers::Fiber* current_ = nullptr;      // Null on the idle stack.
  fibers::Fiber* handed_over_ = nullptr;  // Left to the idle stack, which finds it a stack.
  std::uint32_t slot_runs_ = 0;
  bool searching_ = false;
  bool fair_share_due_ = false;
  bool warned_of_stacks_ = false;
  std::uint64_t next_fiber_id_ = 0;
  std::int64_t last_poll_ = 0;
  WatchPauses watch_pauses_;
  std::uint32_t tick_ = 0;  // Counts scheduling decisions.
  fibers::Stack idle_stack_;
  fibers::StackPool stacks_;
  fibers::FiberCache fibers_;
  BlockCache blocks_;
  base::Random random_;
  std::vector<Look> looks_;
  WorkerCounters counters_;
};

}  // namespace weft::scheduler
