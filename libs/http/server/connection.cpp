#include "libs/http/server/connection.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <weft/this_fiber.hpp>

#include "io/poller.hpp"
#include "libs/http/server/allowance.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/server/session.hpp"

namespace weft::http {

Connection::Connection(net::TcpStream stream, ServerCore& server) noexcept
    : ConnectionRecord(Deadline::now_nanoseconds()), stream_(std::move(stream)), server_(server) {}

bool Connection::wait_for_bytes() noexcept {
  return ConnectionRecord::wait_for_bytes(stream_.socket().handle(),
                                          detail::Task([this] { serve(); }));
}

// Closed or not, the direction is there as long as the stream has its socket, which a conversation
// may have taken: then null.
io::IoDirection* Connection::reading() noexcept {
  io::IoHandle* const handle = stream_.socket().handle();
  return handle == nullptr ? nullptr : &handle->read();
}

// Runs in a new fiber.
void Connection::serve() noexcept {
  set_caller(this_fiber::id());
  SessionEnd end = SessionEnd::over;
  try {
    end = serve_bytes();
  } catch (...) {  // For want of memory. A part of an answer is not to be taken for all.
    server_.report(std::current_exception());
    reset();
  }
  if (end == SessionEnd::idle && wait_for_bytes()) return;
  if (layer_ != nullptr) (void)layer_->shutdown(Deadline::past());
  server_.end_connection(*this);
}

SessionEnd Connection::serve_bytes() {
  // The watch has taken the edge, so whether there are bytes has to be asked.
  if (io::IoDirection* const direction = reading()) direction->set_drained(false);
  SessionEnd end = shake_hands();
  if (end == SessionEnd::over) return end;
  if (conversation_ != nullptr) return converse(false);
  if (layer_ != nullptr || !server_.options().secure) {
    end = serve_session(*this);
    if (end == SessionEnd::upgraded) end = converse(true);
  }
  return end;
}

// Runs once, where HTTP uses a layer.
SessionEnd Connection::shake_hands() {
  const ServerLayer& secure = server_.options().secure;
  if (!secure || layer_ != nullptr) return SessionEnd::idle;
  if (!stream_.wait_readable(Deadline::past())) {
    return must_end() ? SessionEnd::over : SessionEnd::idle;
  }
  auto [layer, error] =
      secure(stream_, {Deadline::after(server_.limits().head), server_.end_of_new_connections()});
  if (error == weft::Errc::cancelled) return SessionEnd::over;
  if (error == std::errc::resource_unavailable_try_again) {
    server_.meter().count_refused();
    reset();
    return SessionEnd::over;
  }
  if (error) {
    server_.meter().count_malformed();
    linger();  // So that the client learns why.
    return SessionEnd::over;
  }
  layer_ = std::move(layer);
  return SessionEnd::idle;
}

void Connection::upgrade(Talk talk, std::string_view early) {
  conversation_ = std::make_unique<Conversation>(Conversation{std::move(talk), std::string(early)});
}

// An edge without bytes is no reason to talk, unless the server stops.
SessionEnd Connection::converse(bool begins) {
  const auto has_bytes = [this] {
    return (layer_ != nullptr && layer_->may_have_read_ahead()) ||
           stream_.wait_readable(Deadline::past()) != weft::Errc::timed_out;
  };
  std::string early = std::move(conversation_->early);
  const std::stop_token stop = server_.stop_token();
  for (bool talks = begins || has_bytes(); talks || stop.stop_requested(); talks = has_bytes()) {
    const bool is_last = stop.stop_requested();
    try {
      const Upgraded rest{stream_, early, layer_.get(), stop};
      if (conversation_->talk(rest) == net::Next::close || is_last) return SessionEnd::over;
    } catch (...) {
      server_.report(std::current_exception());
      return SessionEnd::over;
    }
    early = {};
  }
  return SessionEnd::idle;
}

bool Connection::must_end() const noexcept {
  if (server_.stopping() && (requests() > 0 || server_.end_of_new_connections().stop_requested()))
    return true;
  const std::chrono::nanoseconds quiet(Deadline::now_nanoseconds() - active_at());
  return quiet >= server_.limits().idle;
}

bool Connection::may_have_bytes() noexcept {
  if (layer_ != nullptr && layer_->may_have_read_ahead()) return true;
  io::IoDirection* const direction = reading();
  return direction == nullptr || direction->worth_trying();
}

net::Result<std::size_t> Connection::read(std::span<char> room, Deadline deadline) {
  const auto bytes = std::as_writable_bytes(room);
  std::optional<ClientWait> wait;
  if (deadline != Deadline::past()) wait.emplace(progress_, ClientWait::For::bytes);
  const auto result =
      layer_ != nullptr ? layer_->read_some(bytes, deadline) : stream_.read_some(bytes, deadline);
  if (!result.error) progress_.count_received(result.value);
  return result;
}

std::error_code Connection::write(std::string_view text, Allowance& allowance) {
  auto bytes = std::as_bytes(std::span(text));
  if (layer_ != nullptr) return write_by_layer(bytes, allowance);
  // Most answers fit at once, and then no clock is needed.
  auto result = stream_.write_some(bytes, Deadline::past());
  allowance.earn(result.value);
  for (;;) {
    progress_.count_sent(result.value);
    bytes = bytes.subspan(result.value);
    if (result.error && result.error != weft::Errc::timed_out) return result.error;
    if (bytes.empty()) return {};
    const ClientWait wait(progress_, ClientWait::For::room);
    result = allowance.wait(
        [&](const Deadline deadline) { return stream_.write_some(bytes, deadline); });
    if (result.error == weft::Errc::timed_out && !allowance.covers(result)) return result.error;
  }
}

// In parts, as only the end of a call shows progress.
std::error_code Connection::write_by_layer(std::span<const std::byte> bytes, Allowance& allowance) {
  constexpr std::size_t kPart = 64 * 1024;
  const ClientWait wait(progress_, ClientWait::For::room);
  for (;;) {
    const auto part = bytes.first(std::min(kPart, bytes.size()));
    const auto result =
        allowance.wait([&](const Deadline deadline) { return layer_->write_all(part, deadline); });
    progress_.count_sent(result.value);
    bytes = bytes.subspan(result.value);
    if (result.error && !allowance.covers(result)) return result.error;
    // A layer that has taken all, and could not deliver it in time, is called again without bytes.
    if (!result.error && bytes.empty()) return {};
  }
}

// Reads however much comes: a client that sends a large body must still read why it was refused.
void Connection::linger() {
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  if (layer_ != nullptr) (void)layer_->shutdown(deadline);
  if (!stream_.shutdown(net::Shutdown::write)) return;
  std::array<char, 4096> room;
  // The layer does not read these bytes: no caller needs them. The clock is read, because a read
  // that finds bytes succeeds past its deadline, too.
  while (!deadline.passed()) {
    if (stream_.read_some(std::as_writable_bytes(std::span(room)), deadline).error) return;
  }
}

void Connection::reset() noexcept {
  (void)stream_.set_reset_on_close(true);
  stream_.close();
}

}  // namespace weft::http
