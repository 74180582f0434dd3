#include "libs/http/server/server_connection.hpp"

#include <exception>
#include <weft/this_fiber.hpp>

#include "libs/http/server/server_core.hpp"
#include "libs/http/server/session.hpp"

namespace weft::http {

ServerConnection::ServerConnection(net::TcpStream stream, ServerCore& server) noexcept
    : ConnectionRecord(Deadline::now_nanoseconds()),
      transport_(std::move(stream)),
      server_(server) {}

bool ServerConnection::wait_for_bytes() noexcept {
  return ConnectionRecord::wait_for_bytes(transport_.stream().socket().handle(),
                                          detail::Task([this] { serve(); }));
}

// Serves the connection, in a new fiber.
void ServerConnection::serve() noexcept {
  set_caller(this_fiber::id());
  if (const std::string& name = server_.options().name; !name.empty()) this_fiber::set_name(name);
  SessionEnd end = SessionEnd::over;
  try {
    end = serve_bytes();
  } catch (...) {  // Memory ran out. The reset shows the client that the response is incomplete.
    server_.report(std::current_exception());
    transport_.reset();
  }
  if (end == SessionEnd::idle && wait_for_bytes()) return;
  transport_.link().announce_end();
  server_.end_connection(*this);
}

SessionEnd ServerConnection::serve_bytes() {
  transport_.expect_bytes();  // The watch has consumed the edge that announced bytes.
  SessionEnd end = is_begun_ ? SessionEnd::idle : read_proxy_header();
  if (!is_begun_) return end;
  end = shake_hands();
  if (end == SessionEnd::over) return end;
  if (conversation_ != nullptr) return converse(false);
  if (transport_.layer() != nullptr || !server_.options().secure) {
    end = serve_session(*this);
    if (end == SessionEnd::upgraded) end = converse(true);
  }
  return end;
}

bool ServerConnection::begins_with_header() const noexcept {
  const net::Networks& networks = server_.options().proxy_protocol.networks;
  return !networks.empty() && networks.contains(transport_.stream().peer_address());
}

// Reads a PROXY header, if the connection begins with one, and then sets is_begun_. The
// connection serves no requests until is_begun_ is set.
SessionEnd ServerConnection::read_proxy_header() {
  if (!begins_with_header()) {
    is_begun_ = true;
    return SessionEnd::idle;
  }
  if (!transport_.stream().wait_readable(Deadline::past())) {
    return server_.must_end(*this) ? SessionEnd::over : SessionEnd::idle;
  }
  const auto [header, error] = net::read_proxy_header(
      transport_.stream(),
      {Deadline::after(server_.options().proxy_protocol.wait), server_.end_of_new_connections()});
  if (error) {
    if (error != weft::Errc::cancelled) server_.meter().count_malformed();
    return SessionEnd::over;
  }
  proxied_ = std::make_unique<const net::ProxyHeader>(header);
  is_begun_ = true;
  return SessionEnd::idle;
}

// Creates the connection's layer if the server uses one. Returns at once if the layer exists.
SessionEnd ServerConnection::shake_hands() {
  const ServerLayer& secure = server_.options().secure;
  if (!secure || transport_.layer() != nullptr) return SessionEnd::idle;
  if (!transport_.stream().wait_readable(Deadline::past())) {
    return server_.must_end(*this) ? SessionEnd::over : SessionEnd::idle;
  }
  auto [layer, error] = secure(transport_.stream(), {Deadline::after(server_.limits().head),
                                                     server_.end_of_new_connections()});
  if (error == weft::Errc::cancelled) return SessionEnd::over;
  if (error == std::errc::resource_unavailable_try_again) {
    server_.meter().count_refused();
    transport_.reset();
    return SessionEnd::over;
  }
  if (error) {
    server_.meter().count_malformed();
    transport_.linger();  // Lets the client receive the reason before the close.
    return SessionEnd::over;
  }
  transport_.set_layer(std::move(layer));
  return SessionEnd::idle;
}

// Calls the upgraded connection's talk while there are bytes to read. If `begins` is true or the
// server is stopping, calls it at least once, even without bytes.
SessionEnd ServerConnection::converse(bool begins) {
  std::string early = std::move(conversation_->early);
  const std::stop_token stop = server_.stop_token();
  for (bool talks = begins || transport_.has_bytes(); talks || stop.stop_requested();
       talks = transport_.has_bytes()) {
    const bool is_last = stop.stop_requested();
    try {
      const Upgraded rest{transport_.stream(), early, transport_.layer(), stop};
      if (conversation_->talk(rest) == net::Next::close || is_last) return SessionEnd::over;
    } catch (...) {
      server_.report(std::current_exception());
      return SessionEnd::over;
    }
    early = {};
  }
  return SessionEnd::idle;
}

}  // namespace weft::http
