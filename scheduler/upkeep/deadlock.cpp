#include "scheduler/upkeep/deadlock.hpp"

#include "base/signal_handlers.hpp"
#include "base/thread.hpp"
#include "scheduler/shared.hpp"

namespace weft::scheduler {

using detail::full_fence;
using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;

// Returns std::nullopt if a worker or a timer may still wake a fiber.
std::optional<DeadlockWatch::Evidence> DeadlockWatch::collect(unsigned worker) const noexcept {
  Evidence evidence{0, {0, 0}};
  const auto desks = shared_.desks().all();
  for (const Desk* desk : desks) {
    if (desk->index != worker && !shared_.is_asleep(*desk)) return std::nullopt;
  }
  // The fence precedes the reads of the counters, so everything that a worker counted before it
  // fell asleep is visible. It pairs with the fence in sleep().
  full_fence();  // [idle]
  for (const Desk* desk : desks) {
    evidence.switches += desk->recorder.counters().switches.get();
    if (!desk->next_timer_hint().is_never()) return std::nullopt;
  }
  if (shared_.has_work_hint()) return std::nullopt;
  evidence.threads = ParkedThreads::read();
  return evidence;
}

// Checks every record, which takes a long time. Therefore, find() calls it only after the cheaper
// collect() has succeeded. Returns Finding::doubt if another thread has locked the records.
DeadlockWatch::Finding DeadlockWatch::judge_fibers() const {
  std::uint64_t waiting = 0;
  Finding other = Finding::doubt;
  const bool listed = shared_.fibers().for_each_until(Deadline::past(), [&](const Fiber& fiber) {
    // Relaxed: if find() then collects the same evidence again, no thread has changed these fields.
    const FiberState state = fiber.state.load(relaxed);
    if (state == FiberState::free) return true;
    const auto reason = static_cast<detail::WaitReason>(fiber.reason());
    const bool waits = state == FiberState::parked || state == FiberState::inlining;
    if (!waits) return false;
    if (!ends_from_inside(reason)) {
      other = Finding::waiting;
      return false;
    }
    ++waiting;
    return true;
  });
  return listed && waiting != 0 && waiting == shared_.live() ? Finding::deadlock : other;
}

DeadlockWatch::Finding DeadlockWatch::find(unsigned worker) {
  looks_.fetch_add(1, relaxed);
  const std::optional<Evidence> before = collect(worker);
  if (!before || before->switches == found_at_.load(relaxed)) return Finding::doubt;
  const Finding found = judge_fibers();
  if (found != Finding::deadlock) return found;
  // The check requires that no other thread of the process is running. It counts the workers of
  // another runtime as running, even if they are asleep, but ignores this runtime's monitor.
  const std::size_t own = shared_.desks().size() + (shared_.options().monitor.enabled ? 1 : 0);
  if (base::count_threads() != own + before->threads.parked()) {
    return Finding::doubt;
  }
  // A signal handler of the program might wake a fiber later.
  if (base::has_foreign_signal_handler()) return Finding::doubt;
  full_fence();  // [idle]
  if (collect(worker) != before) return Finding::doubt;
  found_at_.store(before->switches, relaxed);
  return Finding::deadlock;
}

}  // namespace weft::scheduler
