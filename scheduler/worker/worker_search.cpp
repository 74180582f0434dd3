// What a worker does among the others: as a thief, as a visitor, and when it calls for help.
#include <algorithm>

#include "base/shake.hpp"
#include "scheduler/machine_clock.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

namespace shake = base::shake;
using fibers::Fiber;

namespace {

void spin_between_looks() noexcept {
  for (int i = 0; i < 16; ++i) detail::pause_cpu();
}

Sight see(const LocalQueue& queue, const Timers& timers, const WorkerCounters& counters) noexcept {
  return {.is_open = queue.is_open(),
          .ring_head = queue.ring_head_hint(),
          .ring_size = queue.ring_size_hint(),
          .queued = static_cast<std::int64_t>(queue.size_hint()),
          .next = queue.next_hint(),
          .switches = counters.switches.get(),
          .next_timer = timers.next_hint().nanoseconds()};
}

}  // namespace

// Fibers wait here behind one that runs, or is about to.
void Worker::call_for_help() noexcept {
  if (desk_.queue.empty_hint()) return;
  pace_.note_call(machine_now());
  if (!shared_.is_crowded()) wake_one(shared_);
}

// A searcher, whose queue is empty, steals. Returns how many fibers it took.
std::size_t Worker::steal_from(Desk& victim, std::int64_t now) noexcept {
  LocalQueue& theirs = victim.queue;
  if (!theirs.is_open() || shake::chance(shake::Point::pass_by)) return 0;
  const std::size_t taken = desk_.queue.steal_overflow(theirs, thief_.prefers_new_fibers());
  if (taken != 0) return taken;
  if (shake::chance(shake::Point::grab)) {
    if (const std::size_t stolen = desk_.queue.steal_ring(theirs)) return stolen;
    if (const std::size_t stolen = desk_.queue.steal_next(theirs)) return stolen;
  }
  if (!thief_.may_look(victim.index, now)) return 0;
  const Sight sight = see(theirs, victim.timers, victim.recorder.counters());
  const Thief::Loot loot = thief_.look(victim.index, sight, now);
  if (loot.has_ring) {
    if (const std::size_t stolen = desk_.queue.steal_ring(theirs)) return stolen;
  }
  return loot.has_next ? desk_.queue.steal_next(theirs) : 0;
}

// A worker that has work sees, at a look, to timers that others do not get to, and to fibers that
// wait longer at another worker than here.
void Worker::visit_others(std::int64_t now) noexcept {
  if (!thief_.begin_visits(now)) return;
  const auto desks = shared_.desks();
  const auto count = static_cast<unsigned>(desks.size());
  unsigned next = thief_.choose_first(count);
  for (unsigned i = 0; i < std::min(count, tuning::kVisited); ++i) {
    Desk& other = *desks[next];
    if (&other != &desk_) visit(other, now);
    next = next + 1 == count ? 0 : next + 1;
  }
}

// Runs overdue timers of a worker, and takes fibers from it.
void Worker::visit(Desk& other, std::int64_t now) noexcept {
  const Sight sight = see(other.queue, other.timers, other.recorder.counters());
  const bool is_done_soon = desk_.queue.size_hint() < pace_.allotted();
  const Thief::Visit found = thief_.visit(other.index, sight, other.thread, is_done_soon, now);
  if (found.runs_timers) (void)run_timers(other.timers, now);
  const Thief::Relief relief = found.relief(static_cast<std::int64_t>(desk_.queue.size_hint()));
  if (relief.has_next) (void)desk_.queue.steal_next(other.queue);
  if (relief.fibers <= 0) return;
  if (relief.must_be_older && desk_.queue.waits_longer_than(other.queue)) return;
  if (desk_.queue.relieve(other.queue, static_cast<std::size_t>(relief.fibers)) != 0)
    desk_.recorder.stolen_from(other.recorder);
}

Fiber* Worker::look_everywhere(std::int64_t now) noexcept {
  if (take_injected()) return desk_.queue.pop();
  const auto desks = shared_.desks();
  const auto count = static_cast<unsigned>(desks.size());
  unsigned next = thief_.choose_first(count);
  for (unsigned i = 0; i < count; ++i, next = next + 1 == count ? 0 : next + 1) {
    Desk& victim = *desks[next];
    if (&victim == &desk_) continue;
    if (steal_from(victim, now) != 0) {
      desk_.recorder.stolen_from(victim.recorder);
      return desk_.queue.pop();
    }
  }
  return run_events_of_all() ? desk_.queue.pop() : nullptr;
}

// Whether another worker may have work, or soon make some. What sleeping workers will have comes
// from the kernel first.
bool Worker::is_search_worthwhile() const noexcept {
  if (shared_.awake_hint() <= 1) return false;
  return !shared_.events().watches_anything() || shared_.has_work_hint();
}

// How long to look at the others. A searcher does not see what the kernel has for it: if there is
// anything to watch, that is the better place. Then it looks twice, to see the pace of workers that
// have work.
std::int64_t Worker::search_time() const noexcept {
  return shared_.events().watches_anything() ? tuning::kBetweenLooks : tuning::kSearchTime;
}

Fiber* Worker::search_for_a_while() noexcept {
  const std::int64_t start = machine_now();
  for (std::int64_t now = start;; now = machine_now()) {
    if (Fiber* fiber = look_everywhere(now)) return fiber;
    if (shared_.stopping() || now - start >= search_time()) return nullptr;
    spin_between_looks();
  }
}

}  // namespace weft::scheduler
