// Out of work: what a worker does as a thief.
#include <algorithm>
#include <utility>

#include "scheduler/scheduler.hpp"
#include "scheduler/worker.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::full_fence;
using detail::relaxed;
using detail::release;
using fibers::Fiber;

namespace {

// Nanoseconds. A searcher looks this long before it naps or sleeps: several times what a
// wake-up of a sleeping thread costs.
constexpr std::int64_t kSearchTime = 30'000;
// Work that its owner will have reached within this time is left to it: moving it costs more. Two
// looks at a victim must be as far apart to tell waiting work from work in progress.
constexpr std::int64_t kWorthStealing = 5'000;
// What a victim was doing so long ago says nothing about its pace now.
constexpr std::int64_t kLookIsOld = 1'000'000;
constexpr std::int64_t kShortestNap = 50'000;
constexpr std::int64_t kLongestNap = 1'000'000;

void spin_between_looks() noexcept {
  for (int i = 0; i < 16; ++i) detail::pause_cpu();
}

}  // namespace

// Takes a chain, or nothing, over into the queue.
void Worker::adopt_chain(Fiber* chain) noexcept {
  while (chain != nullptr) {
    Fiber* following = chain->next;
    fibers::prefetch(chain->stack.load(relaxed));
    push(*chain);
    chain = following;
  }
}

Fiber* Worker::steal_from(Worker& victim, Look& look, std::int64_t now) noexcept {
  if (Fiber* chain = victim.overflow_.take_oldest()) {
    adopt_chain(chain);
    return queue_.pop();
  }
  const std::int64_t elapsed = now - look.time;
  if (elapsed < kWorthStealing) return nullptr;
  const Look before =
      std::exchange(look, Look{now, victim.queue_.head_hint(), victim.counters_.switches.get(),
                               victim.slot_.load(relaxed)});
  if (elapsed > kLookIsOld) return nullptr;
  const std::uint32_t size = victim.queue_.size_hint();
  const std::uint32_t taken = look.head - before.head;
  // At the pace just seen the victim needs size * elapsed / taken for what it has.
  if (size > 0 && static_cast<std::int64_t>(taken) * kWorthStealing <=
                      static_cast<std::int64_t>(size) * elapsed) {
    if (Fiber* fiber = victim.queue_.steal_half(queue_)) return fiber;
  }
  const bool slot_waits =
      look.slot != nullptr && look.slot == before.slot && look.switches == before.switches;
  return slot_waits ? victim.slot_.exchange(nullptr, acquire) : nullptr;  // [slot]
}

Fiber* Worker::look_everywhere(std::int64_t now) noexcept {
  if (Fiber* fiber = scheduler_.inject_queue().pop()) return fiber;
  const auto& workers = scheduler_.workers();
  const auto count = static_cast<std::uint32_t>(workers.size());
  std::uint32_t next = random_.below(count);
  for (std::uint32_t i = 0; i < count; ++i, next = next + 1 == count ? 0 : next + 1) {
    Worker& victim = *workers[next];
    if (&victim == this) continue;
    if (Fiber* fiber = steal_from(victim, looks_[next], now)) {
      counters_.steals.add_one();
      return fiber;
    }
  }
  return run_overdue_timers() > 0 ? queue_.pop() : nullptr;
}

Fiber* Worker::search_for_a_while() noexcept {
  const std::int64_t start = Deadline::now_nanoseconds();
  for (std::int64_t now = start; now - start < kSearchTime; now = Deadline::now_nanoseconds()) {
    if (Fiber* fiber = look_everywhere(now)) return fiber;
    if (timers_.due_hint(now) && run_timers(timers_, now) > 0) return queue_.pop();
    if (scheduler_.stopping()) return nullptr;
    spin_between_looks();
  }
  return nullptr;
}

bool Worker::others_make_progress() noexcept {
  const auto& workers = scheduler_.workers();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (workers[i].get() != this && workers[i]->counters().switches.get() != looks_[i].switches) {
      return true;
    }
  }
  return false;
}

// Looks for work at the other workers; nullptr when it should sleep.
Fiber* Worker::search() noexcept {
  if (scheduler_.workers().size() == 1) return nullptr;
  if (!searching_) {
    if (!scheduler_.idle().try_begin_search()) return nullptr;
    searching_ = true;
  }
  for (std::int64_t nap = kShortestNap;; nap = std::min(nap * 2, kLongestNap)) {
    if (Fiber* fiber = search_for_a_while()) return fiber;
    if (scheduler_.stopping() || !others_make_progress()) return nullptr;
    // Others have work, but are done with it sooner than we could take it over. We nap and keep
    // our right to search, so that they need not wake anybody with every fiber they add.
    Worker* nobody = nullptr;
    if (!scheduler_.napper().compare_exchange_strong(nobody, this, detail::seq_cst,
                                                     relaxed)) {  // [idle]
      return nullptr;                                             // One napper is enough.
    }
    full_fence();  // [idle]
    const std::int64_t until =
        std::min(Deadline::now_nanoseconds() + nap, timers_.next_hint().nanoseconds());
    if (scheduler_.inject_queue().empty_hint()) {
      (void)block_until(Deadline::at_nanoseconds(until));
    }
    scheduler_.napper().store(nullptr, relaxed);
    if (Fiber* fiber = queue_.pop()) return fiber;  // The poller has brought some.
  }
}

void Worker::end_search() noexcept {
  searching_ = false;
  if (!scheduler_.idle().end_search()) return;
  // Those who added work while we searched woke nobody: the last searcher looks for them.
  full_fence();  // [idle]
  if (scheduler_.has_work_hint()) scheduler_.wake_one();
}

}  // namespace weft::scheduler
