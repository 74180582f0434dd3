// Between fibers: what a worker does on its idle stack.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/probes.hpp"
#include "base/thread.hpp"
#include "scheduler/current_worker.hpp"
#include "scheduler/exit_watch.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/sleep_protocol.hpp"
#include "scheduler/worker.hpp"

extern "C" {
static constinit const weft::detail::Turn never_over;
__thread weft::scheduler::Worker* weft_current_worker = nullptr;
__thread const weft::detail::Turn* weft_current_turn = &never_over;
}

namespace weft::scheduler {

using detail::relaxed;
using detail::release;
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

}  // namespace weft::scheduler

#if !defined(__x86_64__)
[[gnu::noinline]] bool weft::detail::is_turn_over() noexcept {
  const Turn* turn = weft_current_turn;
  asm volatile("" : "+r"(turn) : : "memory");
  return turn->over.load(relaxed);
}
#endif

namespace weft::scheduler {

namespace {

// Nanoseconds.
// The first sleep of an idle worker is short; README.md says what that is good for.
constexpr std::int64_t kFirstSleep = 1'000'000;
// How long a worker sleeps before it gives the memory of unused stacks and records back.
constexpr std::int64_t kTrimDelay = 100'000'000;
// Looks at what is shared, timers and descriptors should be no further apart than this.
constexpr std::int64_t kLookPeriod = 200'000;
// A busy worker looks at the descriptors no more often than this.
constexpr std::int64_t kPollInterval = 20'000;

}  // namespace

void Worker::run() noexcept {
  born_.store(Deadline::now_nanoseconds(), relaxed);
  thread_number_.store(::gettid(), relaxed);
  weft_current_worker = this;
  weft_current_turn = &turn_;
  thread_ = fibers::ThreadState::of_this_thread();
  clockid_t clock = 0;
  if (::pthread_getcpuclockid(::pthread_self(), &clock) == 0) {
    processor_clock_.store(clock, relaxed);
  }
  idle_stack_.sanitizer.adopt_thread();
  char name[16];
  (void)std::snprintf(name, sizeof name, "weft-%u", index_);
  base::set_thread_name(name);
  while (Fiber* fiber = find_work()) {
    end_search(*this);
    if (std::exchange(timer_untold_, false)) tell_of_timer();
    enter(*fiber);
  }
  thread_.between.destroy();
  weft_current_turn = &never_over;
  weft_current_worker = nullptr;
}

std::int64_t Worker::processor_time() const noexcept {
  const clockid_t clock = processor_clock_.load(relaxed);
  timespec used{};
  if (clock == 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

void Worker::enter(Fiber& fiber) noexcept {
  Stack* stack = fiber.stack.load(relaxed);
  if (stack == nullptr) {
    stack = stacks_.take(fiber.stack_class());
    if (stack == nullptr) return out_of_stacks(fiber);
    bind_to_switch(fiber, *stack);
    stack->home = index_;
  }
  if (watches_switches_) [[unlikely]]
    note_switch(Departure::left, &fiber);
  WEFT_PROBE(run, &fiber, index_);
  current_.store(&fiber, relaxed);
  fiber.state.store(FiberState::running, relaxed);
  counters_.switches.add_one();
  fibers::switch_to(
      thread_, idle_stack_, *stack, [](void*) noexcept {}, nullptr);
}

// The system refuses memory or mappings. The fiber goes to the back of the queue: those that run
// now will give stacks back when they end.
void Worker::out_of_stacks(Fiber& fiber) noexcept {
  const std::size_t bytes = fibers::stack_bytes(fiber.stack_class());
  fiber.is_pinned() ? push_pinned(fiber) : make_ready_last(fiber);
  // Nothing tells when the system will have memory again, hence a pause instead of a wait.
  if (scheduler_.stack_shortage().note(bytes)) {
    (void)park_until(Deadline::after(std::chrono::milliseconds(1)));
  }
}

// A look at all that local work would keep waiting for ever.
void Worker::look_around() noexcept {
  const std::int64_t now = Deadline::now_nanoseconds();
  look_due_ = false;
  queue_.set_time(now);
  allot_decisions(now);
  (void)take_injected();
  if (now - last_reach_ >= kLookPeriod) {
    last_reach_ = now;
    queue_.reach_oldest();
  }
  run_events(now);
  visit_others(now);
}

// As many decisions as were made in a look's period, at the pace of those since the last look. Runs
// may become longer all of a sudden; then the monitor asks for a look.
void Worker::allot_decisions(std::int64_t now) noexcept {
  const std::int64_t elapsed = std::max<std::int64_t>(now - std::exchange(last_look_, now), 1);
  const std::int64_t fitting = kLookPeriod * allotted_ / elapsed;
  allotted_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(fitting, 1, kMostDecisions));
  decisions_left_.store(allotted_, relaxed);
}

bool Worker::take_injected() noexcept {
  const Chain chain = scheduler_.inject_queue().take_all();
  if (chain.is_empty()) return false;
  queue_.push_last(chain);
  return true;
}

// Timers that are due, and descriptors if it is time to look at them.
void Worker::run_events(std::int64_t now) noexcept {
  if (sampler_.is_due(now) || detail::is_tracing() != trace_.is_on()) [[unlikely]]
    begin_watching(now);
  if (timers_.due_hint(now)) (void)run_timers(timers_, now);
  if (scheduler_.events().watches_anything() && now - last_poll_ > kPollInterval) {
    last_poll_ = now;
    counters_.polls.add_one();
    const std::size_t woken = scheduler_.events().wait(Deadline::past());
    if (woken != 0) note(detail::TraceKind::poll, woken);
  }
}

// Waits, with the time that it takes counted.
template <class Wait>
auto Worker::while_parked(Wait wait) noexcept {
  struct Count {
    explicit Count(Worker& parked) noexcept : worker(parked) {
      worker.parked_since_.store(Deadline::now_nanoseconds(), relaxed);
      worker.note(detail::TraceKind::sleep);
    }
    ~Count() {
      const std::int64_t since = worker.parked_since_.load(relaxed);
      worker.counters_.parked_time.add(
          static_cast<std::uint64_t>(Deadline::now_nanoseconds() - since));
      worker.parked_since_.store(0, relaxed);
      worker.note(detail::TraceKind::awake);
    }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    Worker& worker;
  };
  const Count count(*this);
  return wait();
}

// The next fiber to run, whatever it takes; nullptr when the scheduler stops.
Fiber* Worker::find_work() noexcept {
  for (;;) {
    if (look_due_) {
      look_around();
    } else {
      run_events(Deadline::now_nanoseconds());
    }
    if (Fiber* fiber = std::exchange(handed_over_, nullptr)) return fiber;
    if (scheduler_.is_spare(index_) && scheduler_.lets_spare_leave()) {
      rest();
      if (scheduler_.stopping()) return nullptr;
    }
    if (Fiber* fiber = take_own_work()) return fiber;
    if (take_injected()) continue;
    last_poll_ = 0;  // Out of work, so the descriptors are looked at whenever it was last done.
    run_events(Deadline::now_nanoseconds());
    if (has_work_hint() || has_pinned_work()) continue;
    Fiber* found = search(*this);
    if (found == nullptr && !while_parked([this] { return sleep(*this); })) return nullptr;
    // Idle time says nothing about the pace of what comes now.
    allotted_ = kMostDecisions;
    last_look_ = Deadline::now_nanoseconds();
    decisions_left_.store(allotted_, relaxed);
    if (found != nullptr) return found;
    scheduler_.monitor().work_begins();
  }
}

Fiber* Worker::take_pinned() noexcept {
  if (pinned_ready_.is_empty()) pinned_ready_ = pinned_.take_all();
  return pinned_ready_.take_first();
}

// Fibers that may run nowhere else, and those that others might take, too, by turns.
Fiber* Worker::take_own_work() noexcept {
  pinned_first_ = !pinned_first_;
  Fiber* fiber = pinned_first_ ? take_pinned() : queue_.pop();
  if (fiber == nullptr) fiber = pinned_first_ ? queue_.pop() : take_pinned();
  if (has_pinned_work()) ask_to_look();
  return fiber;
}

// When a sleeper gets up by itself, events apart.
Deadline Worker::sleep_limit(bool first) noexcept {
  const std::int64_t now = Deadline::now_nanoseconds();
  if (first) return Deadline::at_nanoseconds(now + kFirstSleep);
  Deadline limit = Deadline::never();
  if (scheduler_.deadlock_watch().is_on_watch(index_)) {
    limit = std::min(limit, watch_pauses_.next());
  }
  if (scheduler_.has_surplus_hint()) {
    limit = std::min(limit, Deadline::at_nanoseconds(now + kTrimDelay));
  }
  return limit;
}

// Sleeps in the poller if it watches anything, else on the futex.
bool Worker::wait_for_events(Deadline deadline) noexcept {
  if (!scheduler_.events().watches_anything()) return parker_.park_until(deadline);
  if (!parker_.begin_elsewhere()) return true;
  counters_.polls.add_one();
  const std::size_t woken = scheduler_.events().wait(deadline);
  if (woken != 0) note(detail::TraceKind::poll, woken);
  return parker_.end_elsewhere() || woken > 0;
}

bool Worker::has_own_work() const noexcept {
  return has_work_hint() || has_pinned_work() ||
         (scheduler_.is_spare(index_) && scheduler_.wants_spare_to_leave());
}

void Worker::begin_idling() noexcept {
  scheduler_.deadlock_watch().take_over(index_);
  watch_pauses_.restart();
}

// After a full fence.
void Worker::note_sleep() noexcept {
  counters_.sleeps.add_one();
  scheduler_.worker_sleeps();
}

// The chores of a worker that nobody needs. True when it may have made work.
bool Worker::do_chores() noexcept {
  give_memory_back();
  return report_deadlock();
}

// A spare that is not needed any more leaves what it has to others. Returns when it is called up
// again, or when the scheduler stops.
void Worker::rest() noexcept {
  for (Chain chain = queue_.take_all(); Fiber* fiber = chain.take_first();) {
    scheduler_.inject_queue().push(*fiber);
  }
  stacks_.empty();
  fibers_.empty();
  end_search(*this);
  announce_from_outside(scheduler_);
  resting_.store(true, release);  // [resting]
  while_parked([this] {
    while (is_resting() && !scheduler_.stopping()) (void)parker_.park_until(Deadline::never());
  });
}

void Worker::call_up() noexcept {
  resting_.store(false, release);  // [resting]
  unpark();
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
  const ExitWatch::Pause pause;
  report(scheduler_);
  return true;
}

}  // namespace weft::scheduler
