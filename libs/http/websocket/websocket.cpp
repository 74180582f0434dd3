#include <weft/http/websocket.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
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

constexpr std::size_t kRoom = 4096;

// Its destructor drops the compressor's context unless the message was sent. Otherwise a later
// message could refer to a message that the peer has not received.
class SentOrForgotten {
 public:
  explicit SentOrForgotten(std::optional<MessageDeflater>& deflater) noexcept
      : deflater_(deflater) {}
  ~SentOrForgotten() {
    if (!is_sent_ && deflater_) deflater_->forget();
  }
  SentOrForgotten(const SentOrForgotten&) = delete;
  SentOrForgotten& operator=(const SentOrForgotten&) = delete;
  void note_sent() noexcept { is_sent_ = true; }

 private:
  std::optional<MessageDeflater>& deflater_;
  bool is_sent_ = false;
};

Errc error_of(std::uint16_t code) noexcept {
  const bool is_size = code == close_code::kTooLarge || code == close_code::kRefused;
  return is_size ? Errc::message_too_large : Errc::malformed_frame;
}

}  // namespace

net::Result<Message> WebSocket::Core::receive(const Until& until) {
  auto result = receive_next(until);
  if (result.error) linger();
  return result;
}

net::Result<Message> WebSocket::Core::receive_next(const Until& until) {
  if (!reading_.try_lock_until(until)) return {.error = until.reason()};
  const HeldLock lock(reading_);
  if (state_.ended) return {.error = state_.ended};
  if (state_.is_parked) return {.error = Errc::unsupported};
  const std::stop_source source;
  detail::StopRegistration<detail::RequestStop> of_server;
  detail::StopRegistration<detail::RequestStop> of_caller;
  of_server.add(link_->stop, {source});
  if (until.token() != nullptr) of_caller.add(*until.token(), {source});
  auto result = read_message(Until(until.deadline(), source.get_token()));
  if (!result.error || state_.ended || !link_->stop.stop_requested() || until.stop_requested()) {
    return result;
  }
  return {.error = go_away()};
}

net::Result<std::optional<Message>> WebSocket::Core::take() {
  auto result = take_next();
  if (result.error) linger();
  return result;
}

net::Result<std::optional<Message>> WebSocket::Core::take_next() {
  reading_.lock();
  const HeldLock lock(reading_);
  state_.is_parked = false;
  // read_message() may return before it has read all bytes, for example after a ping. The loop
  // therefore continues until a read finds no bytes.
  do {
    input_.is_drained = false;
    auto [message, error] = read_message(Deadline::past());
    if (!error) return {.value = std::move(message)};
  } while (!state_.ended && !input_.is_drained);
  if (!state_.ended && link_->stop.stop_requested()) (void)go_away();
  if (state_.ended) return {.error = state_.ended};
  if (input_.rest.empty()) input_.room.reset();
  state_.is_parked = true;
  return {};
}

Deadline WebSocket::Core::look_after() {
  const Deadline soon = Deadline::after(std::min(options_.ping, options_.message));
  if (!reading_.try_lock()) return soon;
  const HeldLock lock(reading_);
  if (state_.ended) return Deadline::never();
  if (!state_.is_parked) return soon;
  if (silence_.message_ends.passed()) {
    (void)send(Opcode::close, make_close(close_code::kRefused, {}), Deadline::past());
    (void)end(Errc::message_too_slow);
    return Deadline::never();
  }
  if (silence_.ends.passed()) {
    if (silence_.awaits_pong) {
      (void)end(weft::Errc::timed_out);
      return Deadline::never();
    }
    (void)send(Opcode::ping, {}, Deadline::past());
    silence_.ends = Deadline::after(options_.ping);
    silence_.awaits_pong = true;
  }
  return std::min({soon, silence_.ends, silence_.message_ends});
}

std::error_code WebSocket::Core::go_away() {
  (void)send(Opcode::close, make_close(close_code::kGoingAway, {}), options_.write);
  (void)await_close(options_.close);
  return end(weft::Errc::end_of_stream);
}

void WebSocket::Core::note_begin(ReaderEvent event) {
  const bool has_begun =
      reader_.is_within_message() || (event == ReaderEvent::nothing && !input_.rest.empty());
  if (!has_begun) {
    silence_.message_ends = Deadline::never();
  } else if (silence_.message_ends.is_never() && options_.message != kNever) {
    silence_.message_ends = Deadline::after(options_.message);
  }
}

net::Result<Message> WebSocket::Core::read_message(const Until& until) {
  for (;;) {
    if (state_.ended) return {.error = state_.ended};
    const ReaderEvent event = reader_.next(input_.rest);
    note_begin(event);
    if (event == ReaderEvent::text || event == ReaderEvent::binary) {
      return {
          .value = {.data = std::move(reader_.message()), .is_text = event == ReaderEvent::text}};
    }
    if (event == ReaderEvent::nothing) {
      if (const auto error = read_more(until)) return {.error = error};
      continue;
    }
    if (const auto error = handle(event)) return {.error = error};
    // Without this check, a peer could extend the wait by sending only pings.
    if (until.is_over()) return {.error = until.reason()};
  }
}

std::error_code WebSocket::Core::read_more(const Until& until) {
  for (;;) {
    const bool pings = options_.ping != kNever;
    const Until limit = until.but_before(silence_.message_ends);
    const auto error = read_once(pings ? limit.but_before(silence_.ends) : limit);
    if (!error) {
      silence_.ends = Deadline::after(options_.ping);
      silence_.awaits_pong = false;
      return {};
    }
    const bool is_silent = error == weft::Errc::timed_out && !until.is_over();
    if (!is_silent && (error == weft::Errc::timed_out || error == weft::Errc::cancelled)) {
      return error;
    }
    if (is_silent && silence_.message_ends.passed()) {
      return refuse(close_code::kRefused, Errc::message_too_slow);
    }
    if (!is_silent || silence_.awaits_pong) return end(error);
    const auto unsent = send(Opcode::ping, {}, until);
    // After this end has sent a close frame, send() returns `closed` instead of sending a ping. The
    // loop then only waits for the peer's close frame.
    if (unsent && unsent != weft::Errc::closed) {
      const bool is_callers = unsent == weft::Errc::timed_out || unsent == weft::Errc::cancelled;
      return is_callers && until.is_over() ? unsent : end(unsent);
    }
    silence_.ends = Deadline::after(options_.ping);
    silence_.awaits_pong = true;
  }
}

std::error_code WebSocket::Core::read_once(const Until& until) {
  // An incomplete frame header stays in the buffer until its missing bytes arrive.
  const std::size_t kept = input_.rest.size();
  if (input_.room == nullptr) input_.room = std::make_unique_for_overwrite<char[]>(kRoom);
  if (kept > 0) std::memmove(input_.room.get(), input_.rest.data(), kept);
  const auto room = std::as_writable_bytes(std::span(input_.room.get(), kRoom)).subspan(kept);
  const auto [count, error] = link_->read_some(room, until);
  input_.rest = {input_.room.get(), error ? kept : kept + count};
  input_.is_drained = error == weft::Errc::timed_out;
  return error == weft::Errc::end_of_stream ? Errc::unexpected_end : error;
}

std::error_code WebSocket::Core::handle(ReaderEvent event) {
  switch (event) {
    case ReaderEvent::ping:
      pong_.owe(reader_.control());
      send_pong();
      return {};  // If the pong cannot be sent, the next read fails.
    case ReaderEvent::close:
      state_ = {.ended = weft::Errc::end_of_stream, .lingers = true};
      peer_close_.code = reader_.code();
      peer_close_.reason = reader_.control();
      over_.set();
      (void)send(Opcode::close, make_close(peer_close_.code, {}), options_.write);
      return state_.ended;
    case ReaderEvent::refused:
      return refuse(reader_.code(), error_of(reader_.code()));
    default:
      return {};  // The event is a pong, whose arrival has ended the silence.
  }
}

std::error_code WebSocket::Core::refuse(std::uint16_t code, Errc why) {
  state_ = {.ended = why, .lingers = true};
  over_.set();
  (void)send(Opcode::close, make_close(code, {}), options_.write);
  return why;
}

std::error_code WebSocket::Core::await_close(const Until& until) {
  while (!state_.ended) {
    const auto error = read_message(until).error;
    if (error) return error;
    // Without this check, a peer could extend the wait by sending messages.
    if (until.is_over()) return until.reason();
  }
  return state_.ended;
}

void WebSocket::Core::linger() {
  {
    // If another caller holds reading_, it sees State::ended, and then lingers or closes the link.
    if (!reading_.try_lock()) return;
    const HeldLock lock(reading_);
    if (!std::exchange(state_.lingers, false)) return;
    link_.lingering.lock();
  }
  const HeldLock lingering(link_.lingering);
  const Deadline deadline = Deadline::after(options_.close);
  const Until until = deadline;
  (void)Link{link_->stream, link_->layer}.end_writing(until);
  std::array<std::byte, 1024> dropped;
  // Checks the clock, because a read that finds bytes succeeds even after its deadline.
  while (!deadline.passed()) {
    if (link_->read_some(dropped, until).error) break;
  }
  link_.close();
}

std::error_code WebSocket::Core::end(std::error_code why) {
  if (!state_.ended) state_.ended = why;
  state_.lingers = false;
  over_.set();
  link_.close();
  return state_.ended;
}

void WebSocket::Core::detach() noexcept {
  link_.detach();
  // The link is now closed, so all calls that use it return. The flags below make later calls fail.
  {
    writing_.lock();
    const HeldLock lock(writing_);
    has_closed_ = true;
  }
  {
    reading_.lock();
    const HeldLock lock(reading_);
    if (!state_.ended) state_.ended = weft::Errc::closed;
    state_.lingers = false;
    over_.set();
  }
  // If linger() is running, waits until it has returned. It returns soon, because reads of the
  // closed link fail.
  link_.lingering.lock();
  const HeldLock lock(link_.lingering);
}

std::error_code WebSocket::Core::send(Opcode opcode, std::string_view payload, const Until& until) {
  const std::error_code error =
      send_alone(opcode, payload, until.but_before(Deadline::after(options_.write)));
  send_pong();
  // The write timeout has passed, but the caller's limit has not.
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

// A reader does not wait for a writer. Instead, the writer sends the pong after its own frame. A
// caller that has unlocked writing_ checks again for a pong, because another caller may have failed
// to lock writing_ in the meantime.
void WebSocket::Core::send_pong() {
  while (pong_.is_owed() && writing_.try_lock()) {
    const HeldLock lock(writing_);
    const std::optional<std::string> payload = pong_.take();
    // No pong may follow the close frame that this end has sent.
    if (payload && !has_closed_) (void)write_frame(Opcode::pong, *payload, options_.write);
  }
}

std::error_code WebSocket::Core::write_frame(Opcode opcode, std::string_view payload,
                                             const Until& until) {
  std::string deflated;
  SentOrForgotten context(deflater_);
  const bool is_tried =
      deflater_ && opcode < Opcode::close && payload.size() >= options_.compress_bytes;
  const bool is_compressed =
      is_tried && deflater_->deflate(payload, deflated) && deflated.size() < payload.size();
  std::string frame;
  std::optional<Mask> mask;
  if (role_ == Role::client) {
    mask.emplace();
    fill_randomly(*mask);
  }
  append_frame(opcode, is_compressed, is_compressed ? deflated : payload, mask, frame);
  const auto [count, error] = link_->write_all(std::as_bytes(std::span(frame)), until);
  if (error && count > 0) {
    // No frame may follow, because the peer would take it for the rest of this incomplete frame.
    has_closed_ = true;
    link_.close();
  }
  if (!error && is_compressed == is_tried) context.note_sent();
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
  // A concurrent receive() may read the peer's close frame instead.
  std::error_code outcome;
  bool is_parked = false;
  if (!reading_.try_lock_until(limit)) {
    outcome = limit.reason();
  } else {
    const HeldLock lock(reading_);
    is_parked = state_.is_parked;
    if (!is_parked) {
      outcome = await_close(limit);
      (void)end(weft::Errc::end_of_stream);
    }
  }
  // If the connection is parked, the server's take() receives the peer's close frame.
  if (is_parked && !over_.wait_until(limit)) outcome = limit.reason();
  link_.close();
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

}  // namespace weft::http
