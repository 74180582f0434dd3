#include <weft/net/socket.hpp>

#include "io/poller.hpp"

namespace weft::net {

void Socket::close() noexcept {
  if (handle_ != nullptr) (void)handle_->close();
}

bool Socket::is_open_hint() const noexcept {
  return handle_ != nullptr && !handle_->is_closed_hint();
}

int Socket::descriptor() const noexcept { return handle_ != nullptr ? handle_->descriptor() : -1; }

int Socket::release() noexcept {
  io::IoHandle* handle = std::exchange(handle_, nullptr);
  return handle != nullptr ? handle->poller().detach(*handle) : -1;
}

void Socket::reset() noexcept {
  if (handle_ != nullptr) handle_->poller().remove(*handle_);
  handle_ = nullptr;
}

}  // namespace weft::net
