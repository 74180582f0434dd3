// Computes SHA-1 for the handshake of a WebSocket; no security depends on this hash.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::http {

[[nodiscard]] std::array<std::uint8_t, 20> sha1(std::string text);

}  // namespace weft::http
