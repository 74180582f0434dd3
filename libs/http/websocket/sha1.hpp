// SHA-1, which the handshake of a WebSocket requires; no security depends on it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::http {

[[nodiscard]] std::array<std::uint8_t, 20> sha1(std::string text);

}  // namespace weft::http
