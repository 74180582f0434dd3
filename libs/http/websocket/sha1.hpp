// Computes SHA-1 for the WebSocket handshake, which does not use the hash for security.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::http {

[[nodiscard]] std::array<std::uint8_t, 20> sha1(std::string text);

}  // namespace weft::http
