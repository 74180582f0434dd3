// What a worker does among the others: as a thief, as a visitor, and when it calls for help.
#include <algorithm>
#include <utility>

#include "base/shake.hpp"
#include "base/thread.hpp"
#include "scheduler/machine_clock.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/worker.hpp"

namespace weft::scheduler {

namespace shake = base::shake;
using fibers::Fiber;

namespace {

void spin_between_looks() noexcept {
  for (int i = 0; i < 16; ++i) detail::pause_cpu();
}

}  // namespace

// Fibers wait here behind one that runs, or is about to.
void Worker::call_for_help() noexcept {
  if (queue_.empty_hint()) return;
  pace_.note_call(machine_now());
  if (!scheduler_.is_crowded()) wake_one(scheduler_);
}

Worker::Look Worker::look_at(const Worker& victim, std::int64_t now) const noexcept {
  return {.time = now,
          .head = victim.queue_.ring_head_hint(),
          .switches = victim.recorder_.counters().switches.get(),
          .next = victim.queue_.next_hint()};
}

// A searcher, whose queue is empty, steals. Returns how many fibers it took.
std::size_t Worker::steal_from(Worker& victim, Look& look, std::int64_t now) noexcept {
  if (!victim.queue_.is_open() || shake::chance(shake::Point::pass_by)) return 0;
  const std::size_t taken = queue_.steal_overflow(victim.queue_, random_.below(2) == 0);
  if (taken != 0) return taken;
  if (shake::chance(shake::Point::grab)) {
    if (const std::size_t stolen = queue_.steal_ring(victim.queue_)) return stolen;
    if (const std::size_t stolen = queue_.steal_next(victim.queue_)) return stolen;
  }
  const std::int64_t elapsed = now - look.time;
  if (elapsed < tuning::kBetweenLooks) return 0;
  const Look before = std::exchange(look, look_at(victim, now));
  if (elapsed > tuning::kLookIsOld) return 0;
  const std::uint32_t size = victim.queue_.ring_size_hint();
  const std::uint32_t run = look.head - before.head;
  // At the pace just seen the victim needs size * elapsed / run for what it has.
  if (size > 0 && static_cast<std::int64_t>(run) * tuning::kWorthStealing <=
                      static_cast<std::int64_t>(size) * elapsed) {
    if (const std::size_t stolen = queue_.steal_ring(victim.queue_)) return stolen;
  }
  const bool next_waits =
      look.next != nullptr && look.next == before.next && look.switches == before.switches;
  return next_waits ? queue_.steal_next(victim.queue_) : 0;
}

// A worker that has work sees, at a look, to timers that others do not get to, and to fibers that
// wait longer at another worker than here. With many workers each visits some of the others, so
// that some worker visits each.
void Worker::visit_others(std::int64_t now) noexcept {
  if (now - last_visit_ < tuning::kVisitPeriod) return;
  last_visit_ = now;
  const auto workers = scheduler_.workers();
  const auto count = static_cast<std::uint32_t>(workers.size());
  std::uint32_t next = random_.below(count);
  for (std::uint32_t i = 0; i < std::min(count, tuning::kVisited); ++i) {
    Worker& other = *workers[next];
    if (&other != this) visit(other, looks_[next], now);
    next = next + 1 == count ? 0 : next + 1;
  }
}

// Whether what waits at another worker, which has run the same fiber since `look`, should not wait
// for its owner: the queue here is done by the next look, or that fiber computes or is blocked. A
// thread that merely waits for a processor will be given its share of them by the kernel.
bool Worker::is_stuck(const Worker& other, Look& look, std::int64_t now) const noexcept {
  if (now - look.time < tuning::kVisitPeriod) return false;
  if (queue_.size_hint() < pace_.allotted()) return true;
  const std::int64_t used = other.processor_time();
  if (look.processor_time == 0) look.processor_time = used;
  if (used - look.processor_time >= tuning::kComputes) return true;
  if (now - std::max(look.time, look.asked) < tuning::kAskPeriod) return false;
  look.asked = now;
  return !base::is_runnable(other.thread_number());
}

// Runs overdue timers of a worker, and takes fibers from one that is stuck, or that has many more
// and needs long for them; but none newer than the ones that wait here.
void Worker::visit(Worker& other, Look& look, std::int64_t now) noexcept {
  const Look before = look;
  const auto run =
      static_cast<std::int64_t>(other.recorder_.counters().switches.get() - before.switches);
  if (run != 0) look = look_at(other, now);
  const bool has_fibers = other.queue_.is_open() && !other.queue_.empty_hint();
  if (!has_fibers && !other.timers_.due_hint(now - tuning::kOverdue)) return;
  const bool stuck = run == 0 && is_stuck(other, look, now);
  const std::int64_t overdue = stuck ? tuning::kOverdue : tuning::kLongOverdue;
  if (other.timers_.due_hint(now - overdue)) (void)run_timers(other.timers_, now);
  if (!has_fibers) return;
  const auto mine = static_cast<std::int64_t>(queue_.size_hint());
  const auto theirs = static_cast<std::int64_t>(other.queue_.size_hint());
  if (stuck) {
    (void)queue_.steal_next(other.queue_);
    relieve(other, (theirs + 1) / 2);
  } else if (theirs * (now - before.time) >= run * tuning::kWorthVisiting &&
             !queue_.waits_longer_than(other.queue_)) {
    relieve(other, (theirs - mine) / 2);
  }
}

// Takes `wanted` fibers, as far as that is no more than can be taken at a time.
void Worker::relieve(Worker& victim, std::int64_t wanted) noexcept {
  if (wanted <= 0) return;
  wanted = std::min(wanted, tuning::kMostRelieved);
  auto taken = static_cast<std::int64_t>(
      queue_.steal_oldest(victim.queue_, static_cast<std::size_t>(wanted)));
  // Its owner will soon get to the fibers in the ring, unless it is stuck or has nothing else.
  if (taken == 0) taken = static_cast<std::int64_t>(queue_.steal_chain(victim.queue_));
  if (taken == 0) {
    const auto most = static_cast<std::size_t>(wanted);
    taken = static_cast<std::int64_t>(queue_.steal_ring(victim.queue_, most));
  }
  if (taken == 0) return;
  recorder_.stolen_from(victim.recorder_);
}

Fiber* Worker::look_everywhere(std::int64_t now) noexcept {
  if (take_injected()) return queue_.pop();
  const auto workers = scheduler_.workers();
  const auto count = static_cast<std::uint32_t>(workers.size());
  std::uint32_t next = random_.below(count);
  for (std::uint32_t i = 0; i < count; ++i, next = next + 1 == count ? 0 : next + 1) {
    Worker& victim = *workers[next];
    if (&victim == this) continue;
    if (steal_from(victim, looks_[next], now) != 0) {
      recorder_.stolen_from(victim.recorder_);
      return queue_.pop();
    }
  }
  return run_events_of_all() ? queue_.pop() : nullptr;
}

// Whether another worker may have work, or soon make some. What sleeping workers will have comes
// from the kernel first.
bool Worker::is_search_worthwhile() const noexcept {
  if (scheduler_.awake_hint() <= 1) return false;
  return !scheduler_.events().watches_anything() || scheduler_.has_work_hint();
}

// How long to look at the others. A searcher does not see what the kernel has for it: if there is
// anything to watch, that is the better place. Then it looks twice, to see the pace of workers that
// have work.
std::int64_t Worker::search_time() const noexcept {
  return scheduler_.events().watches_anything() ? tuning::kBetweenLooks : tuning::kSearchTime;
}

Fiber* Worker::search_for_a_while() noexcept {
  const std::int64_t start = machine_now();
  for (std::int64_t now = start;; now = machine_now()) {
    if (Fiber* fiber = look_everywhere(now)) return fiber;
    if (scheduler_.stopping() || now - start >= search_time()) return nullptr;
    spin_between_looks();
  }
}

}  // namespace weft::scheduler
