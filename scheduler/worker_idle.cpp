// Between fibers: what a worker does on its idle stack.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/thread.hpp"
#include "scheduler/current_worker.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker.hpp"

extern "C" {
__thread weft::scheduler::Worker* weft_current_worker = nullptr;
}

namespace weft::scheduler {

using detail::acquire;
using detail::full_fence;
using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;
using fibers::Stack;

#if !defined(__x86_64__)
[[gnu::noinline]] Worker* current_worker() noexcept {
  Worker* worker = weft_current_worker;
  asm volatile("" : "+r"(worker) : : "memory");
  return worker;
}
#endif

namespace {

// The first sleep of an idle worker is short; README.md says what that is good for.
constexpr std::int64_t kFirstSleep = 1'000'000;
// How long a worker sleeps before it gives the memory of unused stacks and records back.
constexpr std::int64_t kTrimDelay = 100'000'000;
// A timer that its worker has not looked at for so long is anybody's.
constexpr std::int64_t kOverdue = 500'000;
// A queue shorter than this takes a chain of the overflow in, which then surely fits.
constexpr std::uint32_t kRefillBelow = RunQueue::kCapacity / 4;
// A busy worker looks at the descriptors no more often than this.
constexpr std::int64_t kPollInterval = 20'000;

}  // namespace

void Worker::run() noexcept {
  weft_current_worker = this;
  thread_ = fibers::ThreadState::of_this_thread();
  idle_stack_.sanitizer.adopt_thread();
  char name[16];
  (void)std::snprintf(name, sizeof name, "weft-%u", index_);
  base::set_thread_name(name);
  while (Fiber* fiber = find_work()) {
    if (searching_) end_search();
    enter(*fiber);
  }
  thread_.between.destroy();
  weft_current_worker = nullptr;
}

void Worker::enter(Fiber& fiber) noexcept {
  Stack* stack = fiber.stack.load(relaxed);
  if (stack == nullptr) {
    stack = stacks_.take(fiber.size_class);
    if (stack == nullptr) return out_of_stacks(fiber);
    bind(fiber, *stack);
  }
  current_ = &fiber;
  fiber.state.store(FiberState::running, relaxed);
  counters_.switches.add_one();
  fibers::switch_to(
      thread_, idle_stack_, *stack, [](void*) noexcept {}, nullptr);
}

// The system refuses memory or mappings. The fiber goes to the back of the queue: those that run
// now will give stacks back when they end.
void Worker::out_of_stacks(Fiber& fiber) noexcept {
  if (!std::exchange(warned_of_stacks_, true)) {
    const auto counts = scheduler_.stacks().space().counts();
    (void)std::fprintf(
        stderr,
        "weft: no stack of %zu KiB to be had: %llu are set up and the system refuses "
        "more (memory, ulimit -v or vm.max_map_count); new fibers wait until "
        "others end\n",
        fibers::stack_bytes(fiber.size_class) >> 10,
        static_cast<unsigned long long>(counts.carved));
  }
  make_ready_last(fiber);
  // Nothing tells when the system will have memory again, hence a pause instead of a wait.
  (void)block_until(Deadline::after(std::chrono::milliseconds(1)));
}

// What local work would keep waiting for ever: one fiber of each shared or old queue.
void Worker::take_fair_share() noexcept {
  fair_share_due_ = false;
  if (Fiber* fiber = scheduler_.inject_queue().pop()) push(*fiber);
  if (Fiber* fiber = overflow_.take_oldest_fiber()) push(*fiber);
}

// Overflow counts as ready as the queue: a fiber that only yields must not keep it waiting.
void Worker::refill() noexcept {
  if (queue_.size_hint() < kRefillBelow) adopt_chain(overflow_.take_newest());
}

// Timers that are due, and descriptors if it is time to look at them.
void Worker::run_events() noexcept {
  const std::int64_t now = Deadline::now_nanoseconds();
  if (timers_.due_hint(now)) (void)run_timers(timers_, now);
  if (scheduler_.events().watches_anything() && now - last_poll_ > kPollInterval) {
    last_poll_ = now;
    (void)scheduler_.events().wait(Deadline::past());
  }
}

// A chain of those whose sleep is over.
void Worker::wake_sleepers(Fiber* first) noexcept {
  for (Fiber* fiber = first; fiber != nullptr;) {
    Fiber* following = fiber->next;
    fibers::prefetch(fiber->stack.load(relaxed));
    make_ready_last(*fiber);
    fiber = following;
  }
}

std::size_t Worker::run_timers(Timers& timers, std::int64_t now) noexcept {
  std::size_t woken = 0;
  for (Timer* timer = timers.expire(now); timer != nullptr; ++woken) {
    // Read before the wake: the timer stands on the stack of the fiber that goes on then.
    Timer* next = timer->next;
    Fiber& fiber = *timer->waker.fiber();
    if (timer->leads) {
      wake_sleepers(&fiber);
    } else {
      make_ready_last(fiber);
    }
    timer = next;
  }
  return woken;
}

// Those of workers that do not get to them.
std::size_t Worker::run_overdue_timers() noexcept {
  const std::int64_t now = Deadline::now_nanoseconds();
  std::size_t woken = 0;
  for (const auto& other : scheduler_.workers()) {
    if (other.get() != this && other->timers_.due_hint(now - kOverdue)) {
      woken += run_timers(other->timers_, now);
    }
  }
  return woken;
}

// The next fiber to run, whatever it takes; nullptr when the scheduler stops.
Fiber* Worker::find_work() noexcept {
  for (;;) {
    if (fair_share_due_) take_fair_share();
    run_events();
    refill();
    if (Fiber* fiber = std::exchange(handed_over_, nullptr)) return fiber;
    if (Fiber* fiber = take_next()) return fiber;
    if (fair_share_due_) continue;
    if (Fiber* fiber = scheduler_.inject_queue().pop()) return fiber;
    last_poll_ = 0;  // Out of work, so the descriptors are looked at whenever it was last done.
    run_events();
    if (has_work_hint()) continue;
    if (Fiber* fiber = search()) return fiber;
    if (!sleep()) return nullptr;
  }
}

// When a sleeper must look again by itself: for its own timers, and for those of workers that are
// awake, in case they compute for long; sleeping ones see to theirs.
Deadline Worker::sleep_limit(bool napped) noexcept {
  std::int64_t earliest = timers_.next_hint().nanoseconds();
  for (const auto& other : scheduler_.workers()) {
    const Deadline next = other->timers_.next_hint();
    if (next.is_never() || other.get() == this || scheduler_.idle().is_asleep(other->index_))
      continue;
    earliest = std::min(earliest, next.nanoseconds() + kOverdue);
  }
  const Deadline timer = Deadline::at_nanoseconds(earliest);
  const std::int64_t now = Deadline::now_nanoseconds();
  if (!napped) return std::min(timer, Deadline::at_nanoseconds(now + kFirstSleep));
  Deadline limit = timer;
  if (scheduler_.deadlock_watch().is_on_watch(index_)) {
    limit = std::min(limit, watch_pauses_.next());
  }
  if (scheduler_.has_surplus_hint()) {
    limit = std::min(limit, Deadline::at_nanoseconds(now + kTrimDelay));
  }
  return limit;
}

// Sleeps in the poller if it is free and watches anything, else on the futex. True when unparked
// or when the poller made fibers runnable.
bool Worker::block_until(Deadline deadline) noexcept {
  if (!scheduler_.events().watches_anything() || !scheduler_.try_own_poller()) {
    return parker_.park_until(deadline);
  }
  bool unparked = true;
  std::size_t woken = 0;
  if (parker_.begin_elsewhere()) {
    woken = scheduler_.events().wait(deadline);
    unparked = parker_.end_elsewhere();
  }
  scheduler_.disown_poller();
  return unparked || woken > 0;
}

// In small steps, until all is given back or there is something better to do: while it is at
// this, nobody would wake this worker.
void Worker::give_memory_back() noexcept {
  while (!scheduler_.has_work_hint() && !scheduler_.stopping() &&
         !timers_.due_hint(Deadline::now_nanoseconds())) {
    if (!scheduler_.trim_some()) return;
  }
}

// When it is time, and this worker's turn, to look whether anything can still happen. True when
// somebody was told that nothing can: they may have done something about it.
bool Worker::report_deadlock() noexcept {
  DeadlockWatch& watch = scheduler_.deadlock_watch();
  const auto& report = scheduler_.options().on_deadlock;
  if (!watch_pauses_.next().passed() || !watch.is_on_watch(index_)) return false;
  // Without fibers there is nothing to watch: the next one wakes a worker, which takes over.
  if (!report || scheduler_.live() == 0) {
    watch_pauses_.stop();
    return false;
  }
  watch_pauses_.lengthen();
  if (!watch.find(index_)) return false;
  report(scheduler_);
  return true;
}

// Sleeps until there may be work. False when the scheduler stops.
bool Worker::sleep() noexcept {
  IdleSet& idle = scheduler_.idle();
  scheduler_.deadlock_watch().take_over(index_);
  watch_pauses_.restart();
  for (bool napped = false;; napped = true) {
    if (scheduler_.stopping()) return false;
    idle.begin_sleep(index_);
    if (std::exchange(searching_, false)) (void)idle.end_search();
    full_fence();  // [idle]
    scheduler_.worker_sleeps();
    // A searcher, if there is one, looks at the other workers' queues after this; so they are its
    // affair, and a worker that may not search need not wait for them to be empty.
    const bool work = !scheduler_.inject_queue().empty_hint() ||
                      (!idle.someone_searches_hint() && scheduler_.has_work_hint());
    const bool awake = work || scheduler_.stopping() || block_until(sleep_limit(napped));
    if (!idle.try_end_sleep(index_)) {
      // Chosen by a waker, whose unpark is here or on its way; one that has come for another
      // reason may have been taken for it, and then only ends the next sleep early.
      if (!awake) (void)parker_.park_until(Deadline::never());
      searching_ = true;
      return true;
    }
    if (work) {
      // Others may have added more while this worker counted as searching, and woken nobody: it
      // takes the search up again, and the end of it includes the look for more. If it may not,
      // somebody else searches and will look.
      searching_ = idle.try_begin_search();
    }
    if (awake || run_overdue_timers() > 0 || timers_.due_hint(Deadline::now_nanoseconds())) {
      return true;
    }
    if (napped) give_memory_back();
    if (napped && report_deadlock()) return true;
    counters_.sleeps.add_one();
  }
}

}  // namespace weft::scheduler
