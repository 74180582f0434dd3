// The opening of a WebSocket (RFC 6455, 4).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <weft/http/header.hpp>

namespace weft::http {

// What a client's request asks for.
struct Opening {
  // 101; otherwise the status of the refusal.
  int status = 101;
  std::string accept = {};      // The value of Sec-WebSocket-Accept.
  std::string protocol = {};    // The selected one of the server's; empty: none.
  std::string extensions = {};  // All offers, as one list.
};

// Checks a GET of HTTP/1.1, and selects the protocol.
[[nodiscard]] Opening check_opening(std::span<const Header> headers,
                                    std::span<const std::string> protocols);
// Returns the answer to a Sec-WebSocket-Key. Nothing: it has not the form of 16 bytes.
[[nodiscard]] std::optional<std::string> accept_key(std::string_view key);
// Returns the text of the bytes.
[[nodiscard]] std::string base64(std::span<const std::uint8_t> bytes);
// Returns the values of all headers of this name, as one list.
[[nodiscard]] std::string join_values(std::span<const Header> headers, std::string_view name);
// Fills a mask or a key with what no peer can foretell.
void fill_randomly(std::span<char> bytes) noexcept;

}  // namespace weft::http
