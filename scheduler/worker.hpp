// One OS thread that runs fibers.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/task.hpp>
#include <weft/detail/waist.hpp>

#include "base/cache_line.hpp"
#include "base/parker.hpp"
#include "fibers/fiber_store.hpp"
#include "fibers/stack_pool.hpp"
#include "fibers/switch.hpp"
#include "scheduler/block_cache.hpp"
#include "scheduler/deadlock.hpp"
#include "scheduler/local_queue.hpp"
#include "scheduler/pace.hpp"
#include "scheduler/pinned_queue.hpp"
#include "scheduler/recorder.hpp"
#include "scheduler/run_lengths.hpp"
#include "scheduler/thief.hpp"
#include "scheduler/thread_facts.hpp"
#include "scheduler/timers.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

class Scheduler;

// Runs fibers one after the other, as LocalQueue gives them; then what came from outside, then what
// it can steal; else it sleeps.
// A fiber that parks or ends goes straight to the next one if that is at hand. For everything else
// (looks at what others share, timers, polling, stealing, sleeping) it switches to the idle stack,
// the one the thread was born with.
// Owner: all members belong to the worker's thread unless they say otherwise.
class Worker {
 public:
  Worker(Scheduler& scheduler, unsigned index);
  ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The thread's whole life. Returns when the scheduler stops.
  void run() noexcept;

  // The fiber that runs here calls it. `caller` is where the user's call returns to, for dumps.
  // Throws std::bad_alloc, std::system_error (Errc::too_many_fibers); nothing is spawned then.
  void spawn(detail::Task&& task, const void* caller) {
    spawn(std::move(task), default_size_class_, caller);
  }
  void spawn(detail::Task&& task, std::uint8_t size_class, const void* caller);
  // Makes a fiber that make_ready() starts.
  [[nodiscard]] fibers::Fiber& spawn_parked(detail::Task&& task, detail::WaitReason reason);
  void park(detail::After after, detail::WaitReason reason) noexcept;
  void yield() noexcept;
  // The fiber that runs here calls it; it works as detail::run_in_place() does.
  [[nodiscard]] bool run_in_place(const void* target, detail::WaitReason reason) noexcept;
  [[nodiscard]] BlockCache& blocks() noexcept { return blocks_; }
  [[nodiscard]] fibers::Fiber* current_fiber() noexcept { return recorder_.running(); }

  // On this worker's thread: queue a fiber that no other thread refers to. make_ready: it runs
  // next, because what it waits for is hot. make_ready_last: it runs after all that is ready.
  void make_ready(fibers::Fiber& fiber) noexcept;
  void make_ready_last(fibers::Fiber& fiber) noexcept;
  // Queues a fiber that is to run on this worker alone. Any thread may call it.
  void push_pinned(fibers::Fiber& fiber) noexcept;
  // The fiber that runs here calls it, if not pinned, and stays here until unpin_current().
  void pin_current() noexcept;
  void unpin_current() noexcept;
  void add_timer(Timer& timer, Deadline deadline) noexcept {
    if (timers_.add(timer, deadline)) [[unlikely]]
      announce_event();
  }
  // The timer's waker is a parked fiber that nothing but the clock wakes.
  void add_sleep(Timer& timer, Deadline deadline) noexcept {
    if (!timers_.try_follow(*timer.waker.fiber(), deadline)) [[unlikely]]
      lead_sleep(timer, deadline);
  }
  // A timer has become the earliest here, or the event source has been given something to watch.
  void announce_event() noexcept;
  // The fiber that runs here calls it once its turn is over: others go first.
  void give_way() noexcept;

  // Any thread may call these.
  void unpark() noexcept;
  void unpark_for_work() noexcept;
  [[nodiscard]] bool has_work_hint() const noexcept { return !queue_.empty_hint(); }
  [[nodiscard]] Deadline next_timer_hint() const noexcept { return timers_.next_hint(); }
  [[nodiscard]] Scheduler& scheduler() const noexcept { return scheduler_; }
  [[nodiscard]] unsigned index() const noexcept { return index_; }
  [[nodiscard]] std::uint64_t wakeups() const noexcept { return wakeups_.load(detail::relaxed); }
  [[nodiscard]] std::uint64_t overflows() const noexcept { return queue_.spills(); }
  [[nodiscard]] std::size_t queued_hint() const noexcept {
    return queue_.size_hint() + (queue_.next_hint() != nullptr ? 1 : 0);
  }
  // What other threads may read: its counters, times and samples, and the fiber that runs.
  [[nodiscard]] const Recorder& recorder() const noexcept { return recorder_; }
  // A fiber that runs here calls it.
  [[nodiscard]] Recorder& recorder() noexcept { return recorder_; }

  // The monitor calls these.
  // Asks the running fiber to give way at its next call, and the worker to look around before it
  // runs another one.
  void end_turn() noexcept {
    turn_.over.store(true, detail::relaxed);
    ask_to_look();
  }
  // May be lost if the worker counts a decision at this very moment; the monitor asks again.
  void ask_to_look() noexcept { decisions_left_.store(1, detail::relaxed); }
  // Lets thieves take what is queued here. False if the monitor has to try again.
  [[nodiscard]] bool try_open_queue() noexcept { return queue_.try_open(); }
  [[nodiscard]] const WorkerThread& thread() const noexcept { return facts_; }
  // Whether it sleeps in the event source.
  [[nodiscard]] bool waits_for_events_hint() const noexcept { return parker_.is_elsewhere_hint(); }
  // A spare begins to work; whether it rests.
  void call_up() noexcept;
  [[nodiscard]] bool is_resting() const noexcept {
    return resting_.load(detail::acquire);  // [resting]
  }

  // For sleep_protocol.hpp.
  [[nodiscard]] Scheduler& shared() noexcept { return scheduler_; }
  [[nodiscard]] bool& searching() noexcept { return searching_; }
  [[nodiscard]] fibers::Fiber* search_for_a_while() noexcept;
  [[nodiscard]] bool is_search_worthwhile() const noexcept;
  [[nodiscard]] std::int64_t search_time() const noexcept;
  [[nodiscard]] fibers::Fiber* take_own_work() noexcept;
  void begin_idling() noexcept;
  void note_sleep() noexcept;
  [[nodiscard]] Deadline sleep_limit() noexcept;
  [[nodiscard]] Deadline earliest_event(Deadline limit) noexcept;
  [[nodiscard]] bool has_own_work() const noexcept;
  [[nodiscard]] bool has_due_events() const noexcept;
  [[nodiscard]] bool run_events_of_all() noexcept;
  [[nodiscard]] bool do_chores() noexcept;
  [[nodiscard]] bool park_until(Deadline deadline) noexcept { return parker_.park_until(deadline); }
  [[nodiscard]] bool wait_for_events(Deadline deadline, bool in_source) noexcept;

  // Where every stack begins.
  static void stack_main(fibers::Arrival arrival);
  static void run_fibers(void* stack);

 private:
  // worker.cpp: from fiber to fiber.
  // Always inlined, as each fiber's start and end comes here.
  [[nodiscard, gnu::always_inline]] fibers::Fiber& make_fiber(detail::Task&& task,
                                                              std::uint8_t size_class,
                                                              const void* caller);
  [[nodiscard, gnu::always_inline]] fibers::Fiber* take_next_at_hand() noexcept;
  [[nodiscard]] fibers::Stack* resume_point(fibers::Fiber& next) noexcept;
  // Always inlined, so that a switch saves the registers of its caller once.
  [[gnu::always_inline]] void leave(Recorder::Departure how, fibers::Stack& from,
                                    fibers::Fiber* next, detail::After after) noexcept;
  [[gnu::always_inline]] void bind(fibers::Fiber& fiber, fibers::Stack& stack) noexcept;
  void bind_to_switch(fibers::Fiber& fiber, fibers::Stack& stack) noexcept;
  [[nodiscard]] fibers::Fiber* take_child(const void* target) noexcept;
  static void run_inlined(fibers::Fiber& parent, fibers::Fiber& child) noexcept;
  void retire(fibers::Fiber& fiber) noexcept;
  [[nodiscard, gnu::always_inline]] static fibers::Fiber& end_fiber(fibers::Fiber& fiber,
                                                                    fibers::Stack& here) noexcept;
  [[nodiscard, gnu::noinline]] fibers::Fiber& give_stack(fibers::Stack& here,
                                                         fibers::Fiber* next) noexcept;
  void run_task(fibers::Fiber& fiber);
  // Always inlined: each spawn and wake comes here.
  [[gnu::always_inline]] void announce_work() noexcept;
  [[gnu::noinline]] void call_for_help() noexcept;

  template <class Wait>
  auto while_parked(Wait wait) noexcept;

  // worker_idle.cpp: on the idle stack.
  [[nodiscard]] fibers::Fiber* find_work() noexcept;
  // Whether this is a spare worker, and no fiber needs it in particular.
  [[nodiscard]] bool is_free_to_leave() const noexcept;
  void prepare_for_run() noexcept;
  [[nodiscard]] fibers::Fiber* take_chosen() noexcept;
  void look_around() noexcept;
  void look_at_pace(std::int64_t now) noexcept;
  [[nodiscard]] bool expects_long_runs() const noexcept {
    return pace_.expects_long_runs(pace_.last_look());
  }
  [[nodiscard]] bool take_injected() noexcept;
  void run_own_timers(std::int64_t now) noexcept;
  void poll(std::int64_t now) noexcept;
  void note_events(std::size_t woken) noexcept;
  void enter(fibers::Fiber& fiber) noexcept;
  void give_memory_back() noexcept;
  [[nodiscard]] bool must_look_itself() const noexcept;
  [[nodiscard]] bool report_deadlock() noexcept;
  void rest() noexcept;

  // worker_stacks.cpp: when the system has no stacks.
  [[nodiscard]] fibers::Stack* take_stack(const fibers::Fiber& fiber) noexcept;
  void out_of_stacks(fibers::Fiber& fiber) noexcept;
  [[nodiscard]] fibers::Fiber* take_from_aside(unsigned size_class) noexcept;
  void make_ready_on(fibers::Stack& stack, fibers::Fiber& fiber) noexcept;
  void pass_on(fibers::Stack& stack) noexcept;
  [[nodiscard]] bool serve_pinned_aside() noexcept;
  [[nodiscard]] bool serve_aside(unsigned size_class, bool asks_system) noexcept;
  [[nodiscard]] bool serve_aside() noexcept;
  [[nodiscard]] Deadline prepare_aside_for_sleep(Deadline limit, std::int64_t now) noexcept;

  // worker_timers.cpp: the wheels.
  void lead_sleep(Timer& timer, Deadline deadline) noexcept;
  void mind_watch_while_awake() noexcept;
  std::size_t wake_sleepers(fibers::Fiber*& first) noexcept;
  [[nodiscard]] std::int64_t grace_of(const Worker& other) const noexcept;
  [[nodiscard]] bool has_due_timers(const Worker& other, std::int64_t now) const noexcept;
  [[nodiscard]] std::size_t run_timers(Timers& timers, std::int64_t now) noexcept;

  // worker_search.cpp: among the other workers.
  [[nodiscard]] fibers::Fiber* look_everywhere(std::int64_t now) noexcept;
  [[nodiscard]] std::size_t steal_from(Worker& victim, std::int64_t now) noexcept;
  void visit_others(std::int64_t now) noexcept;
  void visit(Worker& other, std::int64_t now) noexcept;

  // Other threads read and write these too.
  LocalQueue queue_;
  Timers timers_;
  PinnedQueue pinned_;
  base::Parker parker_;
  detail::Atomic<std::uint64_t> wakeups_{0};  // Relaxed: statistics.
  // Order
  //   [resting]  rest stores true (release) -> a thread that calls a spare up, or counts the
  //              workers that are asleep, loads (acquire): what it has left to others is visible.
  detail::Atomic<bool> resting_{false};
  WorkerThread facts_;

  alignas(base::kCacheLine) detail::Turn turn_;
  // How many decisions are left until the next look. Relaxed: the monitor writes it now and then.
  detail::Atomic<std::uint32_t> decisions_left_{tuning::kMostDecisions};
  const unsigned index_;
  Scheduler& scheduler_;
  const std::uint8_t default_size_class_;
  bool searching_ = false;
  bool look_due_ = false;
  Recorder recorder_;
  fibers::Fiber* handed_over_ = nullptr;  // Left to the idle stack, which finds it a stack.
  fibers::ThreadState thread_{};
  std::uint64_t next_fiber_id_ = 0;
  Pace pace_;
  RunLengths run_lengths_;
  std::int64_t last_poll_ = 0;
  std::int64_t last_reach_ = 0;  // When the oldest new fibers had a turn.
  WatchPauses watch_pauses_;
  fibers::Stack idle_stack_;
  fibers::StackPool stacks_;
  fibers::FiberCache fibers_;
  BlockCache blocks_;
  Thief thief_;
};

}  // namespace weft::scheduler
