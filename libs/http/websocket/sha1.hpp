// SHA-1, which a WebSocket's handshake needs and which protects nothing there.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::http {

[[nodiscard]] std::array<std::uint8_t, 20> sha1(std::string text);

}  // namespace weft::http
