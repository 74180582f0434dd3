#include "scheduler/upkeep/monitor.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/parker.hpp"
#include "base/probes.hpp"
#include "base/refusal.hpp"
#include "base/thread.hpp"
#include "fibers/calls/thread_calls.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using detail::release;

Monitor::Monitor(Shared& shared, std::function<void(unsigned)> call_workers)
    : shared_(shared),
      options_(shared.options().monitor),
      call_workers_(std::move(call_workers)),
      sights_(shared.most_workers()),
      census_(shared.fibers()),
      cycles_(shared),
      longest_runs_(shared.most_workers()) {}

void Monitor::start() {
  if (!options_.enabled) return;
  try {
    thread_ = std::thread([this] {
      base::set_thread_name("weft-monitor");
      run();
    });
  } catch (const std::system_error& refused) {
    throw base::refusal(refused.code(), "a Runtime cannot start its monitor thread");
  }
}

void Monitor::stop() noexcept {
  if (!thread_.joinable()) return;
  stopping_.store(1, release);  // [stop]
  base::futex_wake_all(stopping_);
  shared_.monitor_rest().end();
  thread_.join();
}

void Monitor::run() noexcept {
  std::int64_t period = tuning::kShortestSamplePeriod;
  std::int64_t last_sample = Deadline::now_nanoseconds();
  std::int64_t last_alert = last_sample;
  std::int64_t last_awake = last_sample;
  std::uint64_t last_switches = 0;
  next_processors_ = last_sample + shared_.options().processors.period.count();
  for (;;) {
    pause(period);
    if (stopping_.load(acquire) != 0) return;  // [stop]
    const std::int64_t now = Deadline::now_nanoseconds();
    const Verdict verdict = sample(now, now - std::exchange(last_sample, now));
    mind_processors(now);
    provide_workers(verdict);
    rouse_sleepers(verdict);
    // Fibers may have run between two samples, so only a census that begins after the second sample
    // shows where they wait.
    const std::uint64_t switches = count_switches();
    const bool have_run = std::exchange(last_switches, switches) != switches;
    if (verdict.anybody_awake || have_run) last_awake = now;
    (void)shared_.stores().decay_some(now);
    census_.step(now);
    if (options_.on_cycle) (void)cycles_.step(census_, now, false);
    const bool is_memory_short = shared_.stores().mind_goal(now);
    if (verdict.is_alert) last_alert = now;
    const std::int64_t longest =
        verdict.anybody_awake ? tuning::kLongSamplePeriod : tuning::kLongestSamplePeriod;
    const bool is_alert =
        now - last_alert < tuning::kAlert || (is_memory_short && verdict.anybody_awake);
    period = is_alert ? tuning::kShortestSamplePeriod : std::min(period * 2, longest);
    if (now - last_awake < tuning::kMonitorRest || !census_.covers(last_awake, now)) continue;
    if (options_.on_cycle && !cycles_.step(census_, now, true)) continue;
    // While spawns are refused, the monitor must keep measuring the memory. A refused spawn wakes
    // no worker, so nothing would wake the monitor if it went to sleep.
    if (shared_.stores().goal().is_refusing()) continue;
    shared_.monitor_rest().rest([this, switches] {
      return shared_.all_are_asleep() && count_switches() == switches &&
             !shared_.stores().goal().is_refusing() &&  // [goal]
             stopping_.load(acquire) == 0;              // [stop]
    });
    last_sample = last_awake = Deadline::now_nanoseconds();
    // After a long rest, the monitor samples often again. After a brief rest, it keeps its period,
    // because the load is probably still light.
    if (last_awake - now >= tuning::kLongestSamplePeriod) period = tuning::kShortestSamplePeriod;
  }
}

Monitor::Verdict Monitor::sample(std::int64_t now, std::int64_t elapsed) noexcept {
  Verdict verdict;
  for (Desk* desk : shared_.desks()) {
    look_at(*desk, sights_[desk->index], now, elapsed, verdict);
  }
  return verdict;
}

std::uint64_t Monitor::count_switches() const noexcept {
  std::uint64_t switches = 0;
  for (const Desk* desk : shared_.desks()) switches += desk->recorder.counters().switches.get();
  return switches;
}

void Monitor::look_at(Desk& desk, Sight& sight, std::int64_t now, std::int64_t elapsed,
                      Verdict& verdict) noexcept {
  const bool is_resting = desk.is_resting();
  if (is_resting || shared_.idle().is_asleep(desk.index)) {
    if (sight.fiber != nullptr) desk.note_run_since(0);
    tell_end(sight, now);
    sight = {};
    if (is_resting) return;
    ++verdict.others;
    return;
  }
  verdict.anybody_awake = true;
  // If a worker started just before the recording of lock owners, its fibers may still lock on the
  // fast path, which records no owner. After the end of a turn, lock() takes the slow path.
  if (base::notes_lock_owners() && !desk.turn.over.load(relaxed)) desk.end_turn();
  const fibers::Fiber* fiber = desk.recorder.running();
  const std::uint64_t switches = desk.recorder.counters().switches.get();
  if (fiber == nullptr || fiber != sight.fiber || switches != sight.switches) {
    tell_end(sight, now);
    sight = {fiber, switches, now};
    desk.note_run_since(0);
    desk.ask_to_look();
    ++verdict.others;
    return;
  }
  verdict.long_runs = true;
  desk.note_run_since(sight.since);
  detail::Atomic<std::int64_t>& longest = longest_runs_[desk.index];
  if (now - sight.since > longest.load(relaxed)) longest.store(now - sight.since, relaxed);
  if (now - sight.since >= options_.turn.count()) desk.end_turn();
  judge(desk, sight, now, elapsed);
  if (!sight.is_blocked || now - sight.since < tuning::kLongBlock) verdict.is_alert = true;
  if (!sight.is_stuck) {
    ++verdict.others;
  } else {
    ++(sight.is_blocked ? verdict.blocked : verdict.computing);
  }
}

// Checks whether a worker that has run the same fiber since the previous sample is stuck.
void Monitor::judge(Desk& desk, Sight& sight, std::int64_t now, std::int64_t elapsed) noexcept {
  const std::int64_t used = desk.thread.processor_time();
  const std::int64_t before = std::exchange(sight.processor_time, used);
  const std::int64_t lasted = now - sight.since;
  if (lasted < options_.stall.count() || before == 0) return;
  // A thread that uses little processor time is blocked, unless it is runnable and is waiting for a
  // processor.
  sight.is_blocked = (used - before) * 8 < elapsed && !desk.thread.is_runnable();
  if (!std::exchange(sight.is_stuck, true)) {
    // Relaxed: the counters are statistics, and only the monitor writes them.
    (sight.is_blocked ? blocked_stalls_ : busy_stalls_).fetch_add(1, relaxed);
    if (sight.is_blocked) WEFT_PROBE(block, sight.fiber, desk.index);
  }
  tell(desk, sight, now);
}

// Calls the handlers for a stall that has not ended.
void Monitor::tell(const Desk& desk, Sight& sight, std::int64_t now) noexcept {
  const std::int64_t lasted = now - sight.since;
  const Stall stall{sight.is_blocked ? Stall::Kind::blocked : Stall::Kind::busy,
                    desk.index,
                    sight.fiber,
                    std::chrono::nanoseconds(lasted),
                    &desk,
                    sight.switches,
                    &shared_.stacks().space()};
  if (sight.is_blocked && sight.blocked_at == 0 && options_.on_blocked) {
    sight.blocked_at = now;
    sight.number = options_.on_blocked(stall);
  }
  if (lasted >= options_.report_after.count() && !std::exchange(sight.is_told, true) &&
      options_.on_stall) {
    options_.on_stall(stall);
  }
}

void Monitor::tell_end(const Sight& sight, std::int64_t now) noexcept {
  if (sight.number == 0) return;
  options_.on_continued(sight.number, std::chrono::nanoseconds(now - sight.blocked_at));
}

fibers::Backtrace Stall::calls() const noexcept {
  const fibers::Backtrace found = fibers::calls_of_thread(*stacks, stuck->thread.number());
  const bool has_gone_on = stuck->recorder.counters().switches.get() != switches;
  return has_gone_on ? fibers::Backtrace() : found;
}

// The function reads kernel files, which takes about 0.1 ms.
void Monitor::mind_processors(std::int64_t now) noexcept {
  if (now < next_processors_) return;
  const ProcessorOptions& processors = shared_.options().processors;
  next_processors_ = now + processors.period.count();
  const unsigned count = processors.count();
  if (count == 0) return;
  shared_.active().note_processors(count);
  shared_.idle().set_workers(shared_.active().usual());
}

unsigned Monitor::spares_for(const Verdict& verdict) const noexcept {
  const bool all_compute = verdict.others == 0 && verdict.computing != 0;
  // While a stuck worker is computing, the spares stay active, because they may be the only workers
  // that are not stuck.
  if (!all_compute && verdict.blocked == 0) return verdict.computing == 0 ? 0 : spares_;
  unsigned wanted = verdict.blocked;
  if (all_compute) {
    // Counts all stuck workers, including stuck spares, and one worker that is not stuck.
    const unsigned enough = verdict.blocked + verdict.computing + 1;
    const unsigned usual = std::min(shared_.active().usual(), enough);
    wanted = std::max(wanted + 1, enough - usual);
    if (!shared_.has_work_hint() && !shared_.has_events_to_watch())
      wanted = std::min(wanted, spares_);
  }
  return std::min(wanted, options_.spares);
}

void Monitor::provide_workers(const Verdict& verdict) noexcept {
  const unsigned spares = spares_for(verdict);
  const unsigned wanted = shared_.active().usual() + spares;
  // Once a second worker is active, all queues must be open to thieves.
  if (wanted > 1 && !shared_.desk(0).queue.try_open()) return;
  spares_ = spares;
  call_workers_(wanted);
}

// Wakes a sleeping worker for queued fibers, and for events that no worker watches. Workers that
// run a fiber for a long time, or that the kernel has preempted, do not wake any sleepers
// themselves.
void Monitor::rouse_sleepers(const Verdict& verdict) noexcept {
  if (!verdict.anybody_awake || !shared_.idle().anyone_asleep()) return;
  if (verdict.long_runs && shared_.has_work_hint()) wake_one(shared_);
  mind_watch(shared_, shared_.earliest_timer_of_awake().nanoseconds());
}

void Monitor::pause(std::int64_t nanoseconds) noexcept {
  base::futex_wait(stopping_, 0,
                   Deadline::at_nanoseconds(Deadline::now_nanoseconds() + nanoseconds));
}

}  // namespace weft::scheduler
