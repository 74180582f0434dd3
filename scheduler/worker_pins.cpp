// Fibers that stay on one worker.
#include "scheduler/current_worker.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

// Nothing here is for thieves, so no other worker is woken. The unpark is remembered: this worker
// does not sleep again before it has looked (has_own_work).
void Worker::push_pinned(Fiber& fiber) noexcept {
  pinned_.push(fiber);
  ask_to_look();
  if (current_worker() != this) unpark();
}

// The fiber is in no queue now; the next wake finds it pinned.
void Worker::pin_current() noexcept {
  Fiber& fiber = *current_fiber();
  fiber.stack.load(relaxed)->home = index_;
  fiber.size_class |= Fiber::kPinned;
  pinned_.pin();
}

void Worker::unpin_current() noexcept {
  Fiber& fiber = *current_fiber();
  fiber.size_class = static_cast<std::uint8_t>(fiber.stack_class());
  pinned_.unpin();
}

bool Worker::is_free_to_leave() const noexcept {
  return scheduler_.is_spare(index_) && !pinned_.keeps_worker();
}

}  // namespace weft::scheduler
