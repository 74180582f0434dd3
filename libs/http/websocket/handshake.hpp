// Implements the opening handshake of a WebSocket (RFC 6455, 4).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <weft/http/header.hpp>

namespace weft::http {

// The result of checking a client's opening request.
struct Opening {
  // 101 accepts the request; any other status refuses it.
  int status = 101;
  std::string accept = {};      // The value of Sec-WebSocket-Accept.
  std::string protocol = {};    // The protocol selected from the server's list; empty if none.
  std::string extensions = {};  // The client's extension offers, as one list.
};

// Checks the headers of an HTTP/1.1 GET request, and selects the protocol.
[[nodiscard]] Opening check_opening(std::span<const Header> headers,
                                    std::span<const std::string> protocols);
// Returns the value of Sec-WebSocket-Accept for a Sec-WebSocket-Key. Returns nothing if the key
// does not encode 16 bytes.
[[nodiscard]] std::optional<std::string> accept_key(std::string_view key);
// Returns the bytes in Base64.
[[nodiscard]] std::string base64(std::span<const std::uint8_t> bytes);
// Returns the values of all headers with this name, as one list.
[[nodiscard]] std::string join_values(std::span<const Header> headers, std::string_view name);
// Fills a mask or a key with bytes that the peer cannot predict.
void fill_randomly(std::span<char> bytes) noexcept;

}  // namespace weft::http
