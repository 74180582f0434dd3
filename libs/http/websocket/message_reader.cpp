#include "libs/http/websocket/message_reader.hpp"

#include <algorithm>

namespace weft::http {

bool MessageReader::refuse(std::uint16_t code) noexcept {
  code_ = code;
  return false;
}

MessageReader::Event MessageReader::refused_by(std::uint16_t code) noexcept {
  code_ = code;
  return Event::refused;
}

MessageReader::Event MessageReader::next(std::string_view& input) {
  for (;;) {
    if (!in_frame_) {
      const FrameHeader::State state = frame_.parse(input);
      if (state == FrameHeader::State::refused) return refused_by(close_code::kProtocolError);
      if (state == FrameHeader::State::incomplete) return Event::nothing;
      if (!begin_frame()) return Event::refused;
    }
    if (!take_payload(input)) return Event::refused;
    if (at_ < frame_.size) return Event::nothing;
    in_frame_ = false;
    const Event event = end_frame();
    if (event != Event::nothing) return event;
  }
}

bool MessageReader::begin_frame() {
  // A client masks its frames; a server does not.
  if (frame_.is_masked != (role_ == Role::server)) return refuse(close_code::kProtocolError);
  if (!frame_.is_control() && !begin_data()) return false;
  if (frame_.is_control()) control_.clear();
  in_frame_ = true;
  at_ = 0;
  return true;
}

bool MessageReader::begin_data() {
  const bool is_first = frame_.opcode != Opcode::continuation;
  if (is_first != (opcode_ == Opcode::continuation)) return refuse(close_code::kProtocolError);
  if (frame_.is_compressed && (!is_first || !may_compress_)) {
    return refuse(close_code::kProtocolError);
  }
  if (is_first) {
    opcode_ = frame_.opcode;
    is_compressed_ = frame_.is_compressed;
    frames_ = 0;
    utf8_ = {};
    message_.clear();
  }
  if (++frames_ > fragments_) return refuse(close_code::kRefused);
  // Compression can enlarge a message slightly, so the compressed size may exceed the limit.
  const std::uint64_t slack = is_compressed_ ? most_ / 8 + 64 : 0;
  const std::uint64_t room = most_ - std::min(most_, message_.size());
  if (frame_.size > room && frame_.size - room > slack) return refuse(close_code::kTooLarge);
  return true;
}

bool MessageReader::take_payload(std::string_view& input) {
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), frame_.size - at_));
  std::string& target = frame_.is_control() ? control_ : message_;
  const std::size_t before = target.size();
  target.append(input.substr(0, count));
  input.remove_prefix(count);
  apply_mask(frame_.mask, at_, target.data() + before, count);
  at_ += count;
  if (frame_.is_control() || opcode_ != Opcode::text || is_compressed_) return true;
  return utf8_.add(std::string_view(target).substr(before)) || refuse(close_code::kBadText);
}

MessageReader::Event MessageReader::end_frame() {
  switch (frame_.opcode) {
    case Opcode::ping:
      return Event::ping;
    case Opcode::pong:
      return Event::pong;
    case Opcode::close:
      return end_close();
    default:
      return frame_.is_final ? end_message() : Event::nothing;
  }
}

MessageReader::Event MessageReader::end_message() {
  const bool is_text = opcode_ == Opcode::text;
  opcode_ = Opcode::continuation;
  if (is_compressed_) {
    std::string inflated;
    const Inflated outcome = inflater_.inflate(message_, most_, inflated);
    if (outcome == Inflated::too_large) return refused_by(close_code::kTooLarge);
    if (outcome == Inflated::corrupt) return refused_by(close_code::kBadText);
    message_ = std::move(inflated);
    if (is_text && !utf8_.add(message_)) return refused_by(close_code::kBadText);
  }
  if (is_text && !utf8_.is_complete()) return refused_by(close_code::kBadText);
  return is_text ? Event::text : Event::binary;
}

MessageReader::Event MessageReader::end_close() {
  code_ = close_code::kNone;
  if (control_.empty()) return Event::close;
  if (control_.size() == 1) return refused_by(close_code::kProtocolError);
  const auto high = static_cast<unsigned char>(control_[0]);
  const auto low = static_cast<unsigned char>(control_[1]);
  const auto code = static_cast<std::uint16_t>(high << 8U | low);
  control_.erase(0, 2);
  if (!may_be_sent(code)) return refused_by(close_code::kProtocolError);
  if (!is_utf8(control_)) return refused_by(close_code::kBadText);
  code_ = code;
  return Event::close;
}

}  // namespace weft::http
