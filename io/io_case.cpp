#include <weft/detail/io_case.hpp>

#include <utility>
#include <weft/detail/invariant.hpp>

#include "io/attempt.hpp"
#include "io/poller.hpp"

namespace weft::detail {

namespace {

using io::IoDirection;
using io::IoHandle;
using io::IoUse;

IoDirection& direction_of(IoHandle& handle, IoCase::Direction direction) noexcept {
  return direction == IoCase::Direction::read ? handle.read() : handle.write();
}

}  // namespace

void IoCase::prepare() noexcept {
  watching_ = handle_ != nullptr && handle_->enter();
  if (watching_) {
    direction_of(*handle_, direction_).add_watch(*this);
  } else {
    // A close since the attempt makes another attempt worthwhile.
    const detail::SpinGuard guard(own_lock_);
    told_ = true;
  }
}

void IoCase::dismiss() noexcept {
  if (!std::exchange(watching_, false)) return;
  IoDirection& direction = direction_of(*handle_, direction_);
  direction.remove_watch(*this);
  if (take_note()) direction.set_drained(false);
  handle_->leave();
}

bool IoCase::attempt() noexcept {
  const IoUse use(handle_);
  if (!use) return true;
  IoDirection& direction = direction_of(*use, direction_);
  WEFT_INVARIANT(!watching_ || !handle_->is_unused(), "IoCase I1: a case that watches is a call");
  if (watching_ && take_note()) {
    direction.remove_watch(*this);  // Waits only until the notifying thread has finished.
    direction.add_watch(*this);
  }
  const bool ready = direction.deadline().passed() ||
                     (direction_ == Direction::read ? io::is_readable(use->descriptor())
                                                    : io::is_writable(use->descriptor()));
  // The edge may still be pending, or the watch may have taken it.
  if (ready) direction.set_drained(false);
  return ready;
}

bool IoCase::is_ready() noexcept { return told_ || due().passed(); }

Deadline IoCase::due() noexcept {
  return watching_ ? direction_of(*handle_, direction_).deadline() : Deadline::never();
}

bool IoCase::take_note() noexcept {
  const detail::SpinGuard guard(own_lock_);
  return std::exchange(told_, false);
}

Waker IoCase::note_edge(IoWatch& watch) noexcept {
  auto& self = static_cast<IoCase&>(watch);
  const detail::SpinGuard guard(self.own_lock_);
  self.told_ = true;
  const Waiter* waiter = self.own_list_.claim_front();
  return waiter == nullptr ? Waker() : waiter->waker;
}

}  // namespace weft::detail
