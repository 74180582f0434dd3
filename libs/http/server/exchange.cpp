#include "libs/http/server/exchange.hpp"

#include <chrono>
#include <exception>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "libs/http/server/server_connection.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/wire/head_rules.hpp"
#include "libs/http/wire/input.hpp"

namespace weft::http {

Exchange::Exchange(ServerConnection& connection, Input& input, Output& output,
                   const Head& head) noexcept
    : connection_(connection),
      input_(input),
      head_(head),
      body_(connection.transport(), input, output, head, connection.server().limits()),
      limit_(limit_after(connection.server().limits().request)),
      answer_(connection, output, head, body_) {
  is_read_.store(body_.over(), detail::relaxed);
}

net::Result<std::size_t> Exchange::read_some(std::span<std::byte> buffer) {
  const auto result = body_.read_some(buffer);
  if (body_.over()) {
    is_read_.store(true, detail::release);  // [read]
    watch_for_hang_up();
  }
  return result;
}

Context& Exchange::context() {
  if (Context* const made = current_.load(detail::acquire)) return *made;  // [made]
  {
    const detail::SpinGuard guard(lock_);
    if (!context_) {
      context_.emplace(&connection_.server().scope(), limit_);
      current_.store(&*context_, detail::release);  // [made]
    }
  }
  if (is_read_.load(detail::acquire)) watch_for_hang_up();  // [read]
  return *current_.load(detail::acquire);                   // [made]
}

void Exchange::set_limit(std::chrono::nanoseconds request) {
  limit_ = limit_after(request);
  if (current_.load(detail::acquire) == nullptr) return;                          // [made]
  current_.store(&narrower_.emplace_front(&*context_, limit_), detail::release);  // [made]
}

const Context* Exchange::ambient(void* exchange) noexcept {
  auto& self = *static_cast<Exchange*>(exchange);
  try {
    return &self.context();
  } catch (const std::exception&) {
    // The context may exist even if the watch could not start.
    const Context* const made = self.current_.load(detail::acquire);  // [made]
    return made != nullptr ? made : &self.connection_.server().scope();
  }
}

// If the context is in use, starts watching for the client to disconnect. The caller must ensure
// that the body has ended and that no fiber reads it.
void Exchange::watch_for_hang_up() {
  {
    const detail::SpinGuard guard(lock_);
    if (!context_ || hang_up_) return;
    if (!has_hung_up(connection_.transport().stream())) {
      hang_up_.emplace(connection_.transport().stream(), *context_);
      return;
    }
  }
  (void)context_->cancel();  // cancel() runs callbacks, so the lock is not held.
}

// Returns false for a request with a body, because some clients send an extra line end after it.
bool Exchange::was_the_last() const noexcept {
  return !head_.keep_alive && head_.framing == Framing::none && input_.rest().empty();
}

bool Exchange::finish() {
  hang_up_.reset();
  if (body_.error()) {
    answer_.close_after();
    answer_.send_error(status_of(body_.error()));
  }
  const Context* const made = current_.load(detail::acquire);  // [made]
  if (made != nullptr && made->is_over()) answer_.give_up();
  return answer_.finish() && body_.discard();
}

}  // namespace weft::http
