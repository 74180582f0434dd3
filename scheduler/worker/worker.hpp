// One OS thread that runs fibers.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/task.hpp>
#include <weft/detail/waist.hpp>

#include "fibers/fiber_store.hpp"
#include "fibers/stack_pool.hpp"
#include "fibers/switch.hpp"
#include "scheduler/desk.hpp"
#include "scheduler/record/recorder.hpp"
#include "scheduler/timers/timers.hpp"
#include "scheduler/upkeep/deadlock.hpp"
#include "scheduler/worker/block_cache.hpp"
#include "scheduler/worker/pace.hpp"
#include "scheduler/worker/run_lengths.hpp"
#include "scheduler/worker/thief.hpp"

namespace weft::scheduler {

class Shared;

// Runs fibers one after the other, as LocalQueue gives them; then what came from outside, then what
// it can steal; else it sleeps.
// A fiber that parks or ends goes straight to the next one if that is at hand. For everything else
// (looks at what others share, timers, polling, stealing, sleeping) it switches to the idle stack,
// the one the thread was born with.
// Owner: the worker's thread, which alone can name it. Others know its desk.
class Worker {
 public:
  Worker(Shared& shared, unsigned index);
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
  [[nodiscard]] fibers::Fiber* current_fiber() noexcept { return desk_.recorder.running(); }
  [[nodiscard]] Desk& desk() noexcept { return desk_; }
  [[nodiscard]] Shared& shared() noexcept { return shared_; }

  // On this worker's thread: queue a fiber that no other thread refers to. make_ready: it runs
  // next, because what it waits for is hot. make_ready_last: it runs after all that is ready.
  void make_ready(fibers::Fiber& fiber) noexcept;
  void make_ready_last(fibers::Fiber& fiber) noexcept;
  // The fiber that runs here calls it, if not pinned, and stays here until unpin_current().
  void pin_current() noexcept;
  void unpin_current() noexcept;
  void add_timer(Timer& timer, Deadline deadline) noexcept {
    if (desk_.timers.add(timer, deadline)) [[unlikely]]
      announce_event();
  }
  // The timer's waker is a parked fiber that nothing but the clock wakes.
  void add_sleep(Timer& timer, Deadline deadline) noexcept {
    if (!desk_.timers.try_follow(*timer.waker.fiber(), deadline)) [[unlikely]]
      lead_sleep(timer, deadline);
  }
  // A timer has become the earliest here, or the event source has been given something to watch.
  void announce_event() noexcept;
  // The fiber that runs here calls it once its turn is over: others go first.
  void give_way() noexcept;

  // A fiber that runs here calls it.
  [[nodiscard]] Recorder& recorder() noexcept { return desk_.recorder; }

  // For sleep_protocol.hpp.
  [[nodiscard]] unsigned index() const noexcept { return desk_.index; }
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
  [[nodiscard]] Deadline next_timer_hint() const noexcept { return desk_.next_timer_hint(); }
  [[nodiscard]] bool park_until(Deadline deadline) noexcept { return desk_.park_until(deadline); }
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
  // Queues a pinned fiber where it is to run.
  void send_home(fibers::Fiber& fiber) noexcept;
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
  [[nodiscard]] std::int64_t grace_of(const Desk& other) const noexcept;
  [[nodiscard]] bool has_due_timers(const Desk& other, std::int64_t now) const noexcept;
  [[nodiscard]] std::size_t run_timers(Timers& timers, std::int64_t now) noexcept;

  // worker_search.cpp: among the other workers.
  [[nodiscard]] fibers::Fiber* look_everywhere(std::int64_t now) noexcept;
  [[nodiscard]] std::size_t steal_from(Desk& victim, std::int64_t now) noexcept;
  void visit_others(std::int64_t now) noexcept;
  void visit(Desk& other, std::int64_t now) noexcept;

  Desk desk_;
  Shared& shared_;
  const std::uint8_t default_size_class_;
  bool searching_ = false;
  bool look_due_ = false;
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
