#include <weft/net/select.hpp>

#include <mutex>
#include <utility>

#include "io/poller.hpp"
#include "net/system_calls.hpp"

namespace weft::detail {

namespace {

using io::IoDirection;
using io::IoHandle;
using io::IoUse;

IoDirection& direction_of(IoHandle& handle, SocketCase::Direction direction) noexcept {
  return direction == SocketCase::Direction::read ? handle.read() : handle.write();
}

}  // namespace

void SocketCase::prepare() noexcept {
  watching_ = handle_ != nullptr && handle_->enter();
  if (watching_) {
    direction_of(*handle_, direction_).add_watch(*this);
  } else {
    // Closed since the attempt: that is worth another one. Nobody else knows of the case yet.
    told_ = true;
  }
}

void SocketCase::dismiss() noexcept {
  if (!std::exchange(watching_, false)) return;
  IoDirection& direction = direction_of(*handle_, direction_);
  direction.remove_watch(*this);
  if (take_note()) direction.set_drained(false);
  handle_->leave();
}

bool SocketCase::attempt() noexcept {
  const IoUse use(handle_);
  if (!use) return true;
  IoDirection& direction = direction_of(*use, direction_);
  if (watching_ && take_note()) {
    direction.remove_watch(*this);  // Only waits until the teller has finished with it.
    direction.add_watch(*this);
  }
  const bool ready = direction.deadline().passed() ||
                     (direction_ == Direction::read ? net::is_readable(use->descriptor())
                                                    : net::is_writable(use->descriptor()));
  // The edge may still be on its way, or have been taken by the watch.
  if (ready) direction.set_drained(false);
  return ready;
}

bool SocketCase::is_ready() noexcept { return told_ || due().passed(); }

Deadline SocketCase::due() noexcept {
  return watching_ ? direction_of(*handle_, direction_).deadline() : Deadline::never();
}

bool SocketCase::take_note() noexcept {
  const std::lock_guard guard(own_lock_);
  return std::exchange(told_, false);
}

Waker SocketCase::note_edge(IoWatch& watch) noexcept {
  auto& self = static_cast<SocketCase&>(watch);
  const std::lock_guard guard(self.own_lock_);
  self.told_ = true;
  const Waiter* waiter = self.own_list_.claim_front();
  return waiter == nullptr ? Waker() : waiter->waker;
}

}  // namespace weft::detail
