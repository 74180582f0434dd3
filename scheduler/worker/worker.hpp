// One OS thread that runs fibers.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/task.hpp>
#include <weft/detail/waist.hpp>

#include "fibers/block_cache.hpp"
#include "fibers/fiber_store.hpp"
#include "fibers/stack_pool.hpp"
#include "fibers/switch.hpp"
#include "scheduler/desk.hpp"
#include "scheduler/record/recorder.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/timers/timers_sleep.hpp"
#include "scheduler/worker/announcer.hpp"
#include "scheduler/worker/fiber_ids.hpp"
#include "scheduler/worker/stack_waits.hpp"

namespace weft::scheduler {

// Runs fibers one after another; LocalQueue determines their order. A fiber that parks or ends
// switches directly to the next queued fiber, if any. For all other work (timers, polling,
// stealing, sleeping), it switches to the idle stack: the thread's own stack, on which Loop runs.
// Owner: the worker's thread. Other threads access only the worker's desk.
class Worker {
 public:
  Worker(Shared& shared, unsigned index);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The running fiber calls this function. `caller` is the return address of the user's call, for
  // dumps. Spawns nothing if it throws std::bad_alloc or std::system_error (Errc::too_many_fibers).
  void spawn(detail::Task&& task, const void* caller) {
    spawn(std::move(task), default_size_class_, caller);
  }
  void spawn(detail::Task&& task, std::uint8_t size_class, const void* caller);
  // Creates a parked fiber, which make_ready() starts.
  [[nodiscard]] fibers::Fiber& spawn_parked(detail::Task&& task, detail::WaitReason reason);
  void park(detail::After after, detail::WaitReason reason) noexcept;
  void yield() noexcept;
  // The running fiber calls this function, which works like detail::run_in_place().
  [[nodiscard]] bool run_in_place(const void* target, detail::WaitReason reason) noexcept;
  [[nodiscard]] fibers::Fiber* current_fiber() noexcept { return desk_.recorder.running(); }
  [[nodiscard]] Desk& desk() noexcept { return desk_; }
  [[nodiscard]] Shared& shared() noexcept { return shared_; }

  // Only this worker's thread may call the next two functions, and no other thread may refer to the
  // fiber. make_ready() makes the fiber run next, because the data that it waited for is hot in the
  // cache. make_ready_last() makes the fiber run after all ready fibers.
  void make_ready(fibers::Fiber& fiber) noexcept;
  void make_ready_last(fibers::Fiber& fiber) noexcept;
  void add_timer(Timer& timer, Deadline deadline) noexcept {
    if (desk_.timers.add(timer, deadline)) [[unlikely]]
      announcer_.announce_event();
  }
  // The timer's waker must refer to a parked fiber that only the timer wakes.
  void add_sleep(Timer& timer, Deadline deadline) noexcept {
    if (!desk_.timers.try_follow(*timer.waker.fiber(), deadline)) [[unlikely]]
      lead_sleep(timer, deadline);
  }
  // A running fiber whose turn is over calls this function, so that other fibers run first.
  void give_way() noexcept;
  [[nodiscard]] Announcer& announcer() noexcept { return announcer_; }

  // --- The worker's loop, and the parts of the loop, call these on the idle stack ---

  void begin_thread() noexcept;
  void end_thread() noexcept;
  // Runs the fiber, and the fibers that follow it, until the worker returns to the idle stack.
  void enter(fibers::Fiber& fiber) noexcept;
  // Before a fiber switches to the idle stack, it stores whether a look for other work is due, and
  // which new fiber needs a stack. The next two functions return and clear these two values.
  [[nodiscard]] bool takes_look() noexcept { return std::exchange(look_due_, false); }
  [[nodiscard]] fibers::Fiber* take_handed_over() noexcept {
    return std::exchange(handed_over_, nullptr);
  }
  [[nodiscard]] StackWaits& stack_waits() noexcept { return stack_waits_; }
  // Gives this worker's free stacks and records to the other workers.
  void empty_caches() noexcept {
    stacks_.empty();
    fibers_.empty();
  }

  // The entry function of every stack.
  static void stack_main(fibers::Arrival arrival);

 private:
  // make_fiber() is always inlined, because every spawn calls it.
  [[nodiscard, gnu::always_inline]] fibers::Fiber& make_fiber(detail::Task&& task,
                                                              std::uint8_t size_class,
                                                              const void* caller);
  [[nodiscard, gnu::always_inline]] fibers::Fiber* take_next_at_hand() noexcept;
  [[nodiscard]] fibers::Stack* resume_point(fibers::Fiber& next) noexcept;
  // leave() is always inlined, so that a switch saves the registers of its caller only once.
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
  static void make_ready_on(Worker& worker, fibers::Stack& stack, fibers::Fiber& fiber) noexcept;
  void lead_sleep(Timer& timer, Deadline deadline) noexcept;
  static void run_fibers(void* stack);

  Desk desk_;
  Shared& shared_;
  const std::uint8_t default_size_class_;
  bool look_due_ = false;
  fibers::Fiber* handed_over_ = nullptr;  // A fiber that needs a stack; Loop::find_work() takes it.
  fibers::ThreadState thread_{};
  FiberIds ids_;
  Announcer announcer_;
  fibers::Stack idle_stack_;
  fibers::StackPool stacks_;
  fibers::FiberCache fibers_;
  fibers::BlockCache blocks_;
  StackWaits stack_waits_;
};

}  // namespace weft::scheduler
