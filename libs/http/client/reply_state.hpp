// Holds the state of a response while a client reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <weft/http/client.hpp>

#include "libs/http/client/client_core.hpp"
#include "libs/http/coding/gunzip.hpp"
#include "libs/http/wire/body.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

// Invariants
//   I1  The strings of head_ refer to text_, which does not change after parse().
//   I2  lease_ has a connection until the body is complete, or until reading has failed
//       permanently.
class Reply::State {
 public:
  State(Url url, const ClientOptions& options) noexcept
      : url_(std::move(url)),
        head_bytes_(options.head_bytes),
        max_headers_(options.headers),
        body_bytes_(options.body_bytes),
        decompresses_(options.decompress) {}

  // Parses `text`, the head.
  [[nodiscard]] Fault parse(std::string text);
  // Marks the connection for closing. Called after parse(), if the client has not sent the complete
  // request.
  void keep_no_connection() noexcept { head_.keep_alive = false; }
  // Takes the connection that delivers the body. Called after parse().
  void begin_body(Lease&& lease, std::string_view method);

  [[nodiscard]] const Head& head() const noexcept { return head_; }
  [[nodiscard]] const Url& url() const noexcept { return url_; }
  [[nodiscard]] bool is_decompressed() const noexcept { return gunzip_ != nullptr; }
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until);
  net::Result<std::string> read_all(const Until& until);
  // Reads the unread part of an unwanted body if it is small, so that the connection can be kept.
  void discard(const Until& until);
  [[nodiscard]] std::span<const Header> trailers() const noexcept { return body_.trailers(); }

 private:
  // Returns whether head_ refers to text_ (see I1); checks only the last header.
  [[nodiscard]] bool has_texts() const noexcept {
    if (head_.headers().empty()) return true;
    const std::string_view last = head_.headers().back().name;
    return last.data() >= text_.data() && last.data() + last.size() <= text_.data() + text_.size();
  }
  // Reads bytes of the body without decompression, as the server has sent them.
  net::Result<std::size_t> read_sent(std::span<std::byte> buffer, const Until& until);
  void end_body();
  net::Result<std::size_t> fail(std::error_code error);

  const Url url_;
  const std::size_t head_bytes_;
  const std::size_t max_headers_;
  const std::uint64_t body_bytes_;
  const bool decompresses_;
  std::string text_;
  Head head_;
  std::optional<Lease> lease_;
  Body body_;
  std::unique_ptr<Gunzip> gunzip_;  // Null if the body is not decompressed.
  std::error_code error_;
};

}  // namespace weft::http
