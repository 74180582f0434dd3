#include <weft/http/websocket.hpp>

#include <cstring>
#include <optional>
#include <weft/detail/stop_registration.hpp>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "libs/http/websocket/deflate.hpp"
#include "libs/http/websocket/handshake.hpp"
#include "libs/http/websocket/utf8.hpp"
#include "libs/http/websocket/websocket_core.hpp"
#include "libs/http/wire/link.hpp"

namespace weft::http {

namespace {

using ReaderEvent = MessageReader::Event;

Errc error_of(std::uint16_t code) noexcept {
  const bool is_size = code == close_code::kTooLarge || code == close_code::kRefused;
  return is_size ? Errc::message_too_large : Errc::malformed_frame;
}

}  // namespace

net::Result<Message> WebSocket::Core::receive(const Until& until) {
  if (!reading_.try_lock_until(until)) return {.error = until.reason()};
  const HeldLock lock(reading_);
  if (ended_) return {.error = ended_};
  const std::stop_source source;
  detail::StopRegistration<detail::RequestStop> of_server;
  detail::StopRegistration<detail::RequestStop> of_caller;
  of_server.add(link_.stop, {source});
  if (until.token() != nullptr) of_caller.add(*until.token(), {source});
  auto result = read_message(Until(until.deadline(), source.get_token()));
  if (!result.error || ended_ || !link_.stop.stop_requested() || until.stop_requested()) {
    return result;
  }
  (void)send(Opcode::close, make_close(close_code::kGoingAway, {}), options_.write);
  (void)await_close(options_.close);
  return {.error = end(weft::Errc::end_of_stream)};
}

net::Result<Message> WebSocket::Core::read_message(const Until& until) {
  for (;;) {
    if (ended_) return {.error = ended_};
    const ReaderEvent event = reader_.next(input_);
    if (event == ReaderEvent::text || event == ReaderEvent::binary) {
      return {
          .value = {.data = std::move(reader_.message()), .is_text = event == ReaderEvent::text}};
    }
    if (event == ReaderEvent::nothing) {
      if (const auto error = read_more(until)) return {.error = error};
      continue;
    }
    if (const auto error = handle(event)) return {.error = error};
    // A peer that sends nothing but pings must not extend the wait.
    if (until.is_over()) return {.error = until.reason()};
  }
}

std::error_code WebSocket::Core::read_more(const Until& until) {
  for (;;) {
    const bool pings = options_.ping != kNever;
    const auto error = read_once(pings ? until.but_before(silence_.ends) : until);
    if (!error) {
      silence_.ends = Deadline::after(options_.ping);
      silence_.awaits_pong = false;
      return {};
    }
    const bool is_silent = error == weft::Errc::timed_out && !until.is_over();
    if (!is_silent && (error == weft::Errc::timed_out || error == weft::Errc::cancelled)) {
      return error;
    }
    if (!is_silent || silence_.awaits_pong) return end(error);
    const auto unsent = send(Opcode::ping, {}, until);
    // After we have sent a close frame we send no ping, and only wait for the peer's close frame.
    if (unsent && unsent != weft::Errc::closed) {
      const bool is_callers = unsent == weft::Errc::timed_out || unsent == weft::Errc::cancelled;
      return is_callers && until.is_over() ? unsent : end(unsent);
    }
    silence_.ends = Deadline::after(options_.ping);
    silence_.awaits_pong = true;
  }
}

std::error_code WebSocket::Core::read_once(const Until& until) {
  // An incomplete frame header stays in the buffer until the rest arrives.
  const std::size_t kept = input_.size();
  if (kept > 0) std::memmove(room_.data(), input_.data(), kept);
  const auto room = std::as_writable_bytes(std::span(room_)).subspan(kept);
  const auto [count, error] = link_.read_some(room, until);
  input_ = {room_.data(), error ? kept : kept + count};
  return error == weft::Errc::end_of_stream ? Errc::unexpected_end : error;
}

std::error_code WebSocket::Core::handle(ReaderEvent event) {
  switch (event) {
    case ReaderEvent::ping:
      pong_.owe(reader_.control());
      send_pong();
      return {};  // The next read reports a broken connection.
    case ReaderEvent::close:
      ended_ = weft::Errc::end_of_stream;
      peer_close_.code = reader_.code();
      peer_close_.reason = reader_.control();
      (void)send(Opcode::close, make_close(peer_close_.code, {}), options_.write);
      drain();
      return end(weft::Errc::end_of_stream);
    case ReaderEvent::refused:
      return refuse(reader_.code());
    default:
      return {};  // This is a pong, which was counted when it arrived.
  }
}

std::error_code WebSocket::Core::refuse(std::uint16_t code) {
  ended_ = error_of(code);
  (void)send(Opcode::close, make_close(code, {}), options_.write);
  drain();
  return end(error_of(code));
}

std::error_code WebSocket::Core::await_close(const Until& until) {
  while (!ended_) {
    const auto error = read_message(until).error;
    if (error) return error;
    // A peer that keeps sending must not extend the wait.
    if (until.is_over()) return until.reason();
  }
  return ended_;
}

void WebSocket::Core::drain() {
  const Deadline deadline = Deadline::after(options_.close);
  const Until until = deadline;
  (void)Link{link_.stream, link_.layer}.end_writing(until);
  // The clock must be read, because a read that finds bytes succeeds even after its deadline.
  while (!deadline.passed()) {
    input_ = {};
    if (read_once(until)) return;
  }
}

std::error_code WebSocket::Core::end(std::error_code why) {
  if (!ended_) ended_ = why;
  link_.close();
  return ended_;
}

std::error_code WebSocket::Core::send(Opcode opcode, std::string_view payload, const Until& until) {
  const std::error_code error =
      send_alone(opcode, payload, until.but_before(Deadline::after(options_.write)));
  send_pong();
  // The wait ended, but not because of the caller's limit.
  if (error == weft::Errc::timed_out && !until.is_over()) link_.close();
  return error;
}

std::error_code WebSocket::Core::send_alone(Opcode opcode, std::string_view payload,
                                            const Until& limit) {
  if (!writing_.try_lock_until(limit)) return limit.reason();
  const HeldLock lock(writing_);
  if (has_closed_) return weft::Errc::closed;
  has_closed_ = opcode == Opcode::close;
  return write_frame(opcode, payload, limit);
}

// The reader does not wait for a writer: a writer sends the pong after its own frame. Reader and
// writer each check for the pong again after the other may have missed it.
void WebSocket::Core::send_pong() {
  while (pong_.is_owed() && writing_.try_lock()) {
    const HeldLock lock(writing_);
    const std::optional<std::string> payload = pong_.take();
    // After our close frame no pong may be sent.
    if (payload && !has_closed_) (void)write_frame(Opcode::pong, *payload, options_.write);
  }
}

std::error_code WebSocket::Core::write_frame(Opcode opcode, std::string_view payload,
                                             const Until& until) {
  std::string deflated;
  const bool is_compressed =
      deflate_bits_ != 0 && opcode < Opcode::close && payload.size() >= options_.compress_bytes &&
      deflate_message(payload, deflate_bits_, deflated) && deflated.size() < payload.size();
  std::string frame;
  std::optional<Mask> mask;
  if (role_ == Role::client) {
    mask.emplace();
    fill_randomly(*mask);
  }
  append_frame(opcode, is_compressed, is_compressed ? deflated : payload, mask, frame);
  const auto [count, error] = link_.write_all(std::as_bytes(std::span(frame)), until);
  if (error && count > 0) {
    // The peer would take any later bytes for the rest of the incomplete frame.
    has_closed_ = true;
    link_.close();
  }
  return error;
}

std::error_code WebSocket::Core::close(std::uint16_t code, std::string_view reason,
                                       const Until& until) {
  if (!may_be_sent(code) || reason.size() > kControlBytes - 2 || !is_utf8(reason)) {
    return std::make_error_code(std::errc::invalid_argument);
  }
  const Until limit = until.but_before(Deadline::after(options_.close));
  if (const auto error = send(Opcode::close, make_close(code, reason), limit)) {
    if (error == weft::Errc::closed) return {};
    link_.close();
    return error;
  }
  // A caller in receive() may read the client's close frame, too.
  std::error_code outcome = weft::Errc::timed_out;
  if (reading_.try_lock_until(limit)) {
    const HeldLock lock(reading_);
    outcome = await_close(limit);
    (void)end(weft::Errc::end_of_stream);
  } else {
    link_.close();
  }
  return outcome == weft::Errc::end_of_stream ? std::error_code() : outcome;
}

net::Result<Message> WebSocket::receive(const Until& until) { return core_.receive(until); }

net::Result<void> WebSocket::send_text(std::string_view text, const Until& until) {
  if (!is_utf8(text)) return Errc::malformed_frame;
  return core_.send(Opcode::text, text, until);
}

net::Result<void> WebSocket::send_binary(std::span<const std::byte> data, const Until& until) {
  return core_.send(Opcode::binary, {reinterpret_cast<const char*>(data.data()), data.size()},
                    until);
}

net::Result<void> WebSocket::close(std::uint16_t code, std::string_view reason,
                                   const Until& until) {
  return core_.close(code, reason, until);
}

std::uint16_t WebSocket::close_code() const noexcept { return core_.close_code(); }
std::string_view WebSocket::close_reason() const noexcept { return core_.close_reason(); }
std::string_view WebSocket::protocol() const noexcept { return core_.protocol(); }

net::Result<void> accept_websocket(Request& request, Response& response,
                                   std::function<void(WebSocket&)> talk,
                                   const WebSocketOptions& options) {
  Opening opening = check_opening(request.headers(), options.protocols);
  if (request.method() != "GET") opening.status = 400;
  const auto terms =
      options.compress ? select_deflate(opening.extensions) : std::optional<DeflateTerms>();
  auto serve = [talk = std::move(talk), options, protocol = opening.protocol,
                bits = terms ? terms->server_bits : 0](Upgraded link) {
    WebSocket::Core core(Role::server, link, options, protocol, bits);
    WebSocket socket(core);
    try {
      talk(socket);
    } catch (...) {
      (void)core.close(close_code::kFailed, {}, {});
      throw;
    }
    (void)core.close(close_code::kNormal, {}, {});
  };
  const bool opens = opening.status == 101 && response.upgrade("websocket", std::move(serve));
  if (!opens) {
    response.set_status(opening.status == 101 ? 400 : opening.status);
    response.add_header("Sec-WebSocket-Version", "13");
    if (opening.status == 426) response.add_header("Upgrade", "websocket");
    (void)response.send({});
    return Errc::unsupported;
  }
  response.add_header("Sec-WebSocket-Accept", opening.accept);
  if (!opening.protocol.empty()) response.add_header("Sec-WebSocket-Protocol", opening.protocol);
  if (terms) response.add_header("Sec-WebSocket-Extensions", terms->answer);
  return {};
}

}  // namespace weft::http
