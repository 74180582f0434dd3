#include "scheduler/worker/searcher.hpp"

#include <algorithm>

#include "base/shake.hpp"
#include "scheduler/machine_clock.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/tuning.hpp"

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

Searcher::Searcher(Worker& worker, Clockwork& clockwork, Shared& shared)
    : worker_(worker),
      desk_(worker.desk()),
      clockwork_(clockwork),
      shared_(shared),
      thief_(shared.most_workers(), (desk_.index + 1 + shake::seed()) * 0x9E3779B97F4A7C15ULL) {}

// Steals fibers for a searcher, whose own queue is empty. Returns the number of stolen fibers.
std::size_t Searcher::steal_from(Desk& victim, std::int64_t now) noexcept {
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

void Searcher::visit_others(std::int64_t now) noexcept {
  const auto desks = shared_.desks().all();
  const auto count = static_cast<unsigned>(desks.size());
  if (count == 1 || !thief_.begin_visits(now)) return;
  unsigned next = thief_.choose_first(count);
  for (unsigned i = 0; i < std::min(count, tuning::kVisited); ++i) {
    Desk& other = *desks[next];
    if (&other != &desk_) visit(other, now);
    next = next + 1 == count ? 0 : next + 1;
  }
}

// Runs overdue timers of the other worker, and takes fibers from that worker.
void Searcher::visit(Desk& other, std::int64_t now) noexcept {
  const Sight sight = see(other.queue, other.timers, other.recorder.counters());
  const bool is_done_soon = desk_.queue.size_hint() < worker_.announcer().pace().allotted();
  const Thief::Visit found = thief_.visit(other.index, sight, other.thread, is_done_soon, now);
  if (found.runs_timers) (void)clockwork_.run(other.timers, now);
  const Thief::Relief relief = found.relief(static_cast<std::int64_t>(desk_.queue.size_hint()));
  if (relief.has_next) (void)desk_.queue.steal_next(other.queue);
  if (relief.fibers <= 0) return;
  if (relief.must_be_older && desk_.queue.waits_longer_than(other.queue)) return;
  if (desk_.queue.relieve(other.queue, static_cast<std::size_t>(relief.fibers)) != 0)
    desk_.recorder.stolen_from(other.recorder);
}

bool Searcher::take_injected() noexcept {
  const Chain chain = shared_.inject_queue().take_all();
  if (chain.is_empty()) return false;
  desk_.queue.push_last(chain);
  return true;
}

Fiber* Searcher::look_everywhere(std::int64_t now) noexcept {
  if (take_injected()) return desk_.queue.pop();
  const auto desks = shared_.desks().all();
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
  return clockwork_.run_all() ? desk_.queue.pop() : nullptr;
}

// Returns whether another worker may have work, or soon create some. A sleeping worker creates no
// work until a kernel event wakes it.
bool is_search_worthwhile(Shared& shared) noexcept {
  if (shared.awake_hint() <= 1) return false;
  return !shared.events().watches_anything() || shared.has_work_hint();
}

// Returns how long a searcher keeps checking the other workers. A searcher does not see kernel
// events, so it should soon sleep in the event source if descriptors are watched. It then searches
// only long enough to check each worker twice, because two checks are needed to measure a worker's
// pace.
std::int64_t search_time(Shared& shared) noexcept {
  return shared.events().watches_anything() ? tuning::kBetweenLooks : tuning::kSearchTime;
}

Fiber* Searcher::search_for_a_while() noexcept {
  const std::int64_t start = machine_now();
  for (std::int64_t now = start;; now = machine_now()) {
    if (Fiber* fiber = look_everywhere(now)) return fiber;
    if (shared_.stopping() || now - start >= search_time(shared_)) return nullptr;
    spin_between_looks();
  }
}

}  // namespace weft::scheduler
