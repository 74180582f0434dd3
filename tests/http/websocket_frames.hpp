// Frames as a WebSocket's client sends them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libs/http/websocket/frame.hpp"

namespace weft::test {

inline constexpr std::string_view kMaskBytes = "\x12\x34\x56\x78";

// A client's frame whose first byte is `first`, such as 0x81.
inline std::string frame(unsigned first, std::string_view payload) {
  std::string bytes;
  http::append_frame(http::Opcode::binary, false, payload, bytes);
  bytes[0] = static_cast<char>(first);
  const std::size_t head = bytes.size() - payload.size();
  bytes[1] = static_cast<char>(static_cast<unsigned char>(bytes[1]) | 0x80U);
  http::apply_mask({0x12, 0x34, 0x56, 0x78}, 0, bytes.data() + head, payload.size());
  return bytes.insert(head, kMaskBytes);
}

inline std::string close_frame(unsigned code, std::string_view reason = {}) {
  return frame(0x88, http::make_close(static_cast<std::uint16_t>(code), reason));
}

}  // namespace weft::test
