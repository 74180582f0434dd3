// Makes frames in the form that WebSocket clients send.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libs/http/websocket/frame.hpp"

namespace weft::test {

// Returns a client's frame whose first byte is `first`, such as 0x81.
inline std::string frame(unsigned first, std::string_view payload) {
  std::string bytes;
  http::append_frame(http::Opcode::binary, false, payload, http::Mask{0x12, 0x34, 0x56, 0x78},
                     bytes);
  bytes[0] = static_cast<char>(first);
  return bytes;
}

inline std::string close_frame(unsigned code, std::string_view reason = {}) {
  return frame(0x88, http::make_close(static_cast<std::uint16_t>(code), reason));
}

}  // namespace weft::test
