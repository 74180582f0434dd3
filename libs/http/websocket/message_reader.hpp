// Assembles messages from a peer's frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/http/websocket/deflate.hpp"
#include "libs/http/websocket/frame.hpp"
#include "libs/http/websocket/utf8.hpp"

namespace weft::http {

// Specifies the side of the connection on which the reader is used.
enum class Role : std::uint8_t { server, client };

// Assembles messages from the peer's bytes, which may arrive in pieces of any size.
class MessageReader {
 public:
  enum class Event : std::uint8_t { nothing, text, binary, ping, pong, close, refused };

  // Without a DeflateContext, the peer must not compress messages.
  MessageReader(Role role, std::size_t message_bytes, std::size_t fragments,
                std::optional<DeflateContext> context) noexcept
      : role_(role),
        most_(message_bytes),
        fragments_(fragments),
        may_compress_(context.has_value()),
        inflater_(context.value_or(DeflateContext::dropped)) {}

  // Consumes bytes from the beginning of `input`. Event::nothing means that the reader needs more
  // bytes.
  [[nodiscard]] Event next(std::string_view& input);
  // Returns whether a message has begun, or the header of an incomplete frame has been parsed.
  [[nodiscard]] bool is_within_message() const noexcept {
    return in_frame_ || opcode_ != Opcode::continuation;
  }
  // Returns the message after Event::text or Event::binary; the caller may move it out.
  [[nodiscard]] std::string& message() noexcept { return message_; }
  // After Event::ping or Event::pong, returns the payload; after Event::close, the reason.
  [[nodiscard]] const std::string& control() const noexcept { return control_; }
  // After Event::close, returns the peer's code (1005 if there is none); after Event::refused, the
  // code to send.
  [[nodiscard]] std::uint16_t code() const noexcept { return code_; }

 private:
  [[nodiscard]] bool begin_frame();
  [[nodiscard]] bool begin_data();
  [[nodiscard]] bool take_payload(std::string_view& input);
  [[nodiscard]] Event end_frame();
  [[nodiscard]] Event end_message();
  [[nodiscard]] Event end_close();
  bool refuse(std::uint16_t code) noexcept;
  Event refused_by(std::uint16_t code) noexcept;

  const Role role_;
  const std::size_t most_;
  const std::size_t fragments_;
  const bool may_compress_;
  MessageInflater inflater_;
  FrameHeader frame_;
  bool in_frame_ = false;
  std::uint64_t at_ = 0;  // The number of received payload bytes of the current frame.
  // The opcode of the current message; `continuation` if no message has begun.
  Opcode opcode_ = Opcode::continuation;
  bool is_compressed_ = false;
  std::size_t frames_ = 0;  // The number of received frames of the current message.
  Utf8Check utf8_;
  std::string message_;
  std::string control_;
  std::uint16_t code_ = 0;
};

}  // namespace weft::http
