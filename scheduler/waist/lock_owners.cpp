// Directs each locking call away from its fast path.
#include <weft/deadline.hpp>
#include <weft/detail/waist.hpp>
#include <weft/this_fiber.hpp>

#include "scheduler/record/lock_owners.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"

namespace weft::detail {

std::uint64_t number_for_notes() noexcept { return this_fiber::id(); }

void note_owner_of(const void* lock) noexcept {
  scheduler::shared_owners.add(lock, number_for_notes());
}
void forget_owner_of(const void* lock) noexcept {
  scheduler::shared_owners.remove(lock, number_for_notes());
}

void note_lock_owners() noexcept {
  if (scheduler::lock_owners_are_noted.exchange(true, relaxed)) return;
  weft_endless_turn.over.store(true, relaxed);
  (void)scheduler::visit_registry(Deadline::never(), [](scheduler::Scheduler& scheduler) {
    for (scheduler::Desk* desk : scheduler.shared().desks()) desk->end_turn();
  });
}

}  // namespace weft::detail
