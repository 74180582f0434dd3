// Compressed messages (RFC 7692), each compressed without the ones before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// True: zlib is there.
[[nodiscard]] bool can_deflate() noexcept;

enum class Inflated : std::uint8_t { well, too_large, corrupt };

// Decompresses a message that has at most `most` bytes.
[[nodiscard]] Inflated inflate_message(std::string_view compressed, std::size_t most,
                                       std::string& out);
// Compresses a message, with a window of 9 to 15 bits. False: there is no memory for it.
[[nodiscard]] bool deflate_message(std::string_view text, int window_bits, std::string& out);

// What both ends use.
struct DeflateTerms {
  int server_bits = 15;
  std::string answer;  // For Sec-WebSocket-Extensions.
};
// Selects the first offer in a client's Sec-WebSocket-Extensions that can be served.
[[nodiscard]] std::optional<DeflateTerms> select_deflate(std::string_view offers);
// What a client offers.
inline constexpr std::string_view kDeflateOffer =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
// Returns true if a server's answer to it can be accepted.
[[nodiscard]] bool accepts_deflate(std::string_view answer) noexcept;

}  // namespace weft::http
