#include "libs/http/server/exchange.hpp"

#include <chrono>
#include <exception>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "libs/http/server/connection.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/wire/head_rules.hpp"
#include "libs/http/wire/input.hpp"

namespace weft::http {

Exchange::Exchange(Connection& connection, Input& input, Output& output, const Head& head) noexcept
    : connection_(connection),
      input_(input),
      head_(head),
      body_(connection.transport(), input, output, head, connection.server().limits()),
      limit_(limit_after(connection.server().limits().request)),
      answer_(connection, output, head, body_) {}

net::Result<std::size_t> Exchange::read_some(std::span<std::byte> buffer) {
  const auto result = body_.read_some(buffer);
  if (body_.over()) watch_for_hang_up();
  return result;
}

Context& Exchange::context() {
  if (!context_) {
    context_.emplace(&connection_.server().scope(), limit_);
    if (body_.over()) watch_for_hang_up();
  }
  return *context_;
}

const Context* Exchange::ambient(void* exchange) noexcept {
  auto& self = *static_cast<Exchange*>(exchange);
  try {
    return &self.context();
  } catch (const std::exception&) {
    return self.context_ ? &*self.context_ : &self.connection_.server().scope();
  }
}

// Call it only once no fiber reads any more.
void Exchange::watch_for_hang_up() {
  if (!context_ || hang_up_) return;
  if (has_hung_up(connection_.transport().stream())) {
    (void)context_->cancel();
  } else {
    hang_up_.emplace(connection_.transport().stream(), *context_);
  }
}

// Behind a body some clients send a line's end that belongs to nothing.
bool Exchange::was_the_last() const noexcept {
  return !head_.keep_alive && head_.framing == Framing::none && input_.rest().empty();
}

bool Exchange::finish() {
  hang_up_.reset();
  if (body_.error()) {
    answer_.close_after();
    answer_.send_error(status_of(body_.error()));
  }
  if (context_ && context_->is_over()) answer_.give_up();
  return answer_.finish() && body_.discard();
}

}  // namespace weft::http
