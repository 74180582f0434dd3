// The data and functions of a worker that other threads may access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/turn.hpp>
#include <weft/detail/waist.hpp>

#include "base/cache_line.hpp"
#include "base/lock_owners.hpp"
#include "base/parker.hpp"
#include "fibers/fiber.hpp"
#include "scheduler/event_source.hpp"
#include "scheduler/queues/local_queue.hpp"
#include "scheduler/queues/pinned_queue.hpp"
#include "scheduler/record/recorder.hpp"
#include "scheduler/thread_facts.hpp"
#include "scheduler/timers/timers.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

// A worker's desk contains everything that another thread can access: the queued fibers, the
// timers, the running fiber, and the means to wake or notify the worker. Only the worker's own
// thread can access its other state (class Worker). The comments between the public functions state
// which threads may call them.
// Order
//   [resting]  begin_rest() stores true (release) -> end_rest() or is_resting() reads true
//              (acquire): the reading thread sees the fibers that the worker moved to other queues.
class Desk {
 public:
  struct Setting {
    unsigned index = 0;
    bool is_resting = false;     // Whether the worker is initially inactive, until end_rest().
    bool has_open_queue = true;  // Whether the queue is initially open to thieves.
    unsigned scheduler = 0;      // The sequence number of the scheduler.
    std::int64_t now = 0;
    detail::Simulation* simulation = nullptr;
  };

  Desk(const Setting& setting, EventSource& events)
      : queue(setting.has_open_queue),
        timers(setting.now),
        index(setting.index),
        recorder(setting.scheduler, setting.index, setting.simulation),
        events_(events),
        resting_(setting.is_resting) {}
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // --- Any thread may call these ---

  void unpark() noexcept {
    if (parker_.unpark()) events_.interrupt();
  }
  void unpark_for_work() noexcept {
    wakeups_.fetch_add(1, detail::relaxed);
    unpark();
  }
  // Queues a fiber that must run on this worker, and unparks the worker. The worker cannot miss the
  // fiber, because after each unpark it checks for pinned fibers before it sleeps again.
  void send_pinned(fibers::Fiber& fiber) noexcept {
    queue_pinned(fiber);
    unpark();
  }
  [[nodiscard]] bool has_work_hint() const noexcept { return !queue.empty_hint(); }
  [[nodiscard]] Deadline next_timer_hint() const noexcept { return timers.next_hint(); }
  [[nodiscard]] std::size_t queued_hint() const noexcept {
    return queue.size_hint() + (queue.next_hint() != nullptr ? 1 : 0);
  }
  // Returns whether the worker is asleep in the event source.
  [[nodiscard]] bool waits_for_events_hint() const noexcept { return parker_.is_elsewhere_hint(); }
  [[nodiscard]] std::uint64_t wakeups() const noexcept { return wakeups_.load(detail::relaxed); }
  // If the worker decrements the counter at the same moment, this store may be lost. The monitor
  // then repeats the request.
  void ask_to_look() noexcept { decisions_left.store(1, detail::relaxed); }

  // --- The monitor and the runtime call these; any thread may call the const functions ---

  // Makes the running fiber yield at its next call that may wait. The worker then performs its
  // periodic look before it runs another fiber.
  void end_turn() noexcept {
    turn.has_ended.store(true, detail::relaxed);
    turn.over.store(true, detail::relaxed);
    ask_to_look();
  }
  // `moment` is the time, in nanoseconds, at which the monitor first sampled the running fiber's
  // current run. It is 0 if the last two samples saw different runs.
  void note_run_since(std::int64_t moment) noexcept { runs_since_.store(moment, detail::relaxed); }
  [[nodiscard]] std::int64_t runs_since() const noexcept {
    return runs_since_.load(detail::relaxed);
  }
  [[nodiscard]] bool is_resting() const noexcept {
    return resting_.load(detail::acquire);  // [resting]
  }

  // --- The monitor and the worker call these ---

  // Returns true if the worker was resting until this call. The caller must then count the worker
  // as awake, and unpark the worker.
  [[nodiscard]] bool end_rest() noexcept {
    return resting_.exchange(false, detail::acq_rel);  // [resting]
  }

  // --- The worker calls these ---

  // Starts a new turn, and returns whether the previous turn was over. The caller cannot read this
  // from `turn.over`, which stays true while locks record their owners.
  [[nodiscard]] bool begin_turn() noexcept {
    const bool leads_here = base::notes_lock_owners();
    const bool has_ended = turn.has_ended.load(detail::relaxed) || !leads_here;
    turn.has_ended.store(false, detail::relaxed);
    turn.over.store(leads_here, detail::relaxed);
    if (!leads_here && base::notes_lock_owners()) turn.over.store(true, detail::relaxed);
    return has_ended;
  }
  // Queues a fiber that must run on this worker. Wakes no worker, because thieves cannot take the
  // fiber, and this worker checks the queue before it sleeps.
  void queue_pinned(fibers::Fiber& fiber) noexcept {
    pinned.push(fiber);
    ask_to_look();
  }
  // Pins the running fiber, which must not be pinned yet, to this worker until unpin_running() is
  // called. A running fiber is in no queue, so the pin takes effect when the fiber is next queued.
  void pin_running() noexcept {
    fibers::Fiber& fiber = *recorder.running();
    fiber.stack.load(detail::relaxed)->home = index;
    fiber.size_class |= fibers::Fiber::kPinned;
    pinned.pin();
  }
  void unpin_running() noexcept {
    fibers::Fiber& fiber = *recorder.running();
    fiber.size_class = static_cast<std::uint8_t>(fiber.stack_class());
    pinned.unpin();
  }
  void begin_rest() noexcept { resting_.store(true, detail::release); }  // [resting]
  // park_until() and wait_in_source() return whether the worker has been unparked.
  [[nodiscard]] bool park_until(Deadline deadline) noexcept { return parker_.park_until(deadline); }
  // Sleeps in the event source; calls `woken` with the number of fibers that became runnable.
  template <class Woken>
  [[nodiscard]] bool wait_in_source(Deadline deadline, Woken woken) noexcept {
    if (!parker_.begin_elsewhere()) return true;
    woken(events_.wait(deadline));
    return parker_.end_elsewhere();
  }

  LocalQueue queue;
  Timers timers;
  PinnedQueue pinned;
  WorkerThread thread;

  // The worker uses the next two members constantly; other threads write them occasionally.
  alignas(base::kCacheLine) detail::Turn turn;
  // The number of fibers that the worker may still choose before its next look (README.md,
  // "Looks"). Relaxed: no other data depends on it.
  detail::Atomic<std::uint32_t> decisions_left{tuning::kMostDecisions};
  const unsigned index;
  Recorder recorder;

 private:
  EventSource& events_;
  base::Parker parker_;
  detail::Atomic<std::uint64_t> wakeups_{0};    // Relaxed: only statistics use it.
  detail::Atomic<std::int64_t> runs_since_{0};  // Relaxed: only dumps use it.
  detail::Atomic<bool> resting_;
};

}  // namespace weft::scheduler
