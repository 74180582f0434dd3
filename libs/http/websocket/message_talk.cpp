#include "libs/http/websocket/message_talk.hpp"

#include <exception>
#include <utility>

#include "libs/http/websocket/frame.hpp"

namespace weft::http {

void SharedWebSocket::watch() {
  const Deadline next = core_.look_after();
  if (next.is_never()) return;
  mutex_.lock();
  const HeldLock lock(mutex_);
  if (is_over_) return;
  look_ = call_at(next, [self = shared_from_this()] {
    try {
      self->watch();
    } catch (const std::exception&) {
      self->core().detach();  // Without a timer, a silent peer would stay undetected.
    }
  });
}

void SharedWebSocket::end() noexcept {
  {
    mutex_.lock();
    const HeldLock lock(mutex_);
    is_over_ = true;
    (void)look_.stop();
  }
  core_.detach();
}

MessageTalk::~MessageTalk() {
  try {
    end();
  } catch (const std::exception&) {
    // The connection has ended, so no caller can receive an exception that on_close throws.
  }
}

net::Next MessageTalk::serve(const Upgraded& link) {
  net::Next next = net::Next::close;
  try {
    if (shared_ == nullptr) open(link);
    next = pass_messages();
  } catch (...) {
    if (shared_ != nullptr) (void)shared_->core().close(close_code::kFailed, {}, {});
    end();
    throw;
  }
  if (next == net::Next::close) end();
  return next;
}

void MessageTalk::open(const Upgraded& link) {
  shared_ = std::make_shared<SharedWebSocket>(link, options_, protocol_, terms_);
  shared_->watch();
  if (handlers_.on_open) {
    handlers_.on_open(std::shared_ptr<WebSocket>(shared_, &shared_->socket()));
  }
}

net::Next MessageTalk::pass_messages() {
  for (;;) {
    auto [message, error] = shared_->core().take();
    if (error) return net::Next::close;
    if (!message) return net::Next::idle;
    handlers_.on_message(shared_->socket(), std::move(*message));
  }
}

void MessageTalk::end() {
  const std::shared_ptr<SharedWebSocket> shared = std::exchange(shared_, nullptr);
  if (shared == nullptr) return;
  shared->end();
  if (handlers_.on_close) handlers_.on_close(shared->socket());
}

}  // namespace weft::http
