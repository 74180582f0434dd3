// Compresses messages (RFC 7692).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// Returns whether zlib is available.
[[nodiscard]] bool can_deflate() noexcept;

// Specifies whether a message may refer to earlier messages. `kept` costs memory between messages.
enum class DeflateContext : std::uint8_t { dropped, kept };

enum class Inflated : std::uint8_t { well, too_large, corrupt };

// Decompresses the received messages. Only one caller may use it at a time.
class MessageInflater {
 public:
  explicit MessageInflater(DeflateContext context) noexcept;
  ~MessageInflater();
  MessageInflater(const MessageInflater&) = delete;
  MessageInflater& operator=(const MessageInflater&) = delete;

  // Appends the next message, of at most `most` bytes, to `out`. After a result other than
  // Inflated::well, the caller must not call inflate() again.
  [[nodiscard]] Inflated inflate(std::string_view compressed, std::size_t most, std::string& out);

 private:
  struct Stream;

  const DeflateContext context_;
  std::unique_ptr<Stream> stream_;  // Null between messages, unless the context is kept.
};

// Compresses the messages that are sent in one direction. Only one caller may use it at a time.
class MessageDeflater {
 public:
  // `window_bits` is from 9 to 15.
  MessageDeflater(int window_bits, DeflateContext context) noexcept;
  ~MessageDeflater();
  MessageDeflater(const MessageDeflater&) = delete;
  MessageDeflater& operator=(const MessageDeflater&) = delete;

  // Compresses the next message, and appends it to `out`. Returns false if memory runs out.
  [[nodiscard]] bool deflate(std::string_view text, std::string& out);
  // Drops the context. The caller must call forget() if the last compressed message does not reach
  // the peer.
  void forget() noexcept;

 private:
  struct Stream;

  const int window_bits_;
  const DeflateContext context_;
  std::unique_ptr<Stream> stream_;  // Null between messages, unless the context is kept.
};

// Holds the parameters on which both ends have agreed.
struct DeflateTerms {
  // The binary logarithm of the window size for sent messages; received messages may use any size.
  int send_bits = 15;
  DeflateContext send = DeflateContext::dropped;
  DeflateContext receive = DeflateContext::dropped;
  std::string answer = {};  // The value of Sec-WebSocket-Extensions in the server's response.
};
// Selects the first offer in a client's Sec-WebSocket-Extensions that a server can accept. If
// `context` is `kept`, both ends keep their contexts, unless the offer forbids this.
[[nodiscard]] std::optional<DeflateTerms> select_deflate(std::string_view offers,
                                                         DeflateContext context);
// Returns a client's offer, the value of Sec-WebSocket-Extensions.
[[nodiscard]] std::string_view deflate_offer(DeflateContext context) noexcept;
// Returns the terms in a server's response to the client's offer; nothing if the client cannot
// accept the response.
[[nodiscard]] std::optional<DeflateTerms> accept_deflate(std::string_view answer,
                                                         DeflateContext context);

}  // namespace weft::http
