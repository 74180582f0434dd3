// Messages out of a peer's frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libs/http/websocket/frame.hpp"
#include "libs/http/websocket/utf8.hpp"

namespace weft::http {

// Which end of a connection this is.
enum class Role : std::uint8_t { server, client };

// Assembles what the peer sends, in whatever pieces it comes.
class MessageReader {
 public:
  enum class Event : std::uint8_t { nothing, text, binary, ping, pong, close, refused };

  MessageReader(Role role, std::size_t message_bytes, std::size_t fragments,
                bool may_compress) noexcept
      : role_(role), most_(message_bytes), fragments_(fragments), may_compress_(may_compress) {}

  // Uses bytes from the beginning of `input`. Event::nothing: it needs more than there are.
  [[nodiscard]] Event next(std::string_view& input);
  // Returns the message after text and binary, which the caller may take.
  [[nodiscard]] std::string& message() noexcept { return message_; }
  // Returns the payload after ping and pong, and the reason after close.
  [[nodiscard]] const std::string& control() const noexcept { return control_; }
  // Returns the code after close (1005: none), and the one to be sent after refused.
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
  FrameHeader frame_;
  bool in_frame_ = false;
  std::uint64_t at_ = 0;                  // Bytes of the frame's payload that have come.
  Opcode opcode_ = Opcode::continuation;  // Of the message; this one: none has begun.
  bool is_compressed_ = false;
  std::size_t frames_ = 0;  // The message has had that many.
  Utf8Check utf8_;
  std::string message_;
  std::string control_;
  std::uint16_t code_ = 0;
};

}  // namespace weft::http
