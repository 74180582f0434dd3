// Compresses messages (RFC 7692), each independently of the earlier ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// Returns whether zlib is available.
[[nodiscard]] bool can_deflate() noexcept;

enum class Inflated : std::uint8_t { well, too_large, corrupt };

// Decompresses a message of at most `most` bytes.
[[nodiscard]] Inflated inflate_message(std::string_view compressed, std::size_t most,
                                       std::string& out);
// Compresses a message, with a window of 9 to 15 bits. Returns false if there is no memory for it.
[[nodiscard]] bool deflate_message(std::string_view text, int window_bits, std::string& out);

// The parameters that both ends have agreed on.
struct DeflateTerms {
  int server_bits = 15;
  std::string answer;  // The value of Sec-WebSocket-Extensions in the answer.
};
// Selects the first offer in a client's Sec-WebSocket-Extensions that we can serve.
[[nodiscard]] std::optional<DeflateTerms> select_deflate(std::string_view offers);
// What a client offers.
inline constexpr std::string_view kDeflateOffer =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
// Returns true if the client can accept this answer of a server.
[[nodiscard]] bool accepts_deflate(std::string_view answer) noexcept;

}  // namespace weft::http
