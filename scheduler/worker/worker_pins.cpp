// Fibers that stay on one worker.
#include "scheduler/shared.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

// Nothing here is for thieves, so no other worker is woken. This worker does not sleep before it
// has looked (has_own_work).
void Worker::send_home(Fiber& fiber) noexcept {
  Desk& home = shared_.home_of(fiber);
  if (&home != &desk_) return home.send_pinned(fiber);
  desk_.pinned.push(fiber);
  desk_.ask_to_look();
}

// The fiber is in no queue now; the next wake finds it pinned.
void Worker::pin_current() noexcept {
  Fiber& fiber = *current_fiber();
  fiber.stack.load(relaxed)->home = desk_.index;
  fiber.size_class |= Fiber::kPinned;
  desk_.pinned.pin();
}

void Worker::unpin_current() noexcept {
  Fiber& fiber = *current_fiber();
  fiber.size_class = static_cast<std::uint8_t>(fiber.stack_class());
  desk_.pinned.unpin();
}

bool Worker::is_free_to_leave() const noexcept {
  return shared_.is_spare(desk_.index) && !desk_.pinned.keeps_worker();
}

}  // namespace weft::scheduler
