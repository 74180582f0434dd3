// Reads the body of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <weft/http/header.hpp>
#include <weft/http/limits.hpp>
#include <weft/net/result.hpp>

#include "libs/http/server/allowance.hpp"
#include "libs/http/wire/body.hpp"
#include "libs/http/wire/head_parser.hpp"
#include "libs/http/wire/input.hpp"

namespace weft::http {

class Output;
class Transport;

// Reads a body that has a Content-Length or is chunked. First reads the bytes that arrived with the
// head, then further bytes from the connection.
class BodyReader {
 public:
  BodyReader(Transport& transport, Input& input, Output& output, const Head& head,
             const Limits& limits) noexcept;

  // Replaces the server's limits for the body and the response; `body_bytes` can only be lowered.
  // The caller must set them before the first read.
  void set_limits(const RequestLimits& limits) noexcept;
  // See Request::read_some().
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  // Reads and drops the rest of the body if it is small. Returns false if the connection cannot
  // serve another request.
  [[nodiscard]] bool discard();
  // Returns false if discard() would certainly fail.
  [[nodiscard]] bool may_be_discarded() const noexcept;
  // Moves the bytes that follow a complete body to the front of the input.
  void give_back();

  [[nodiscard]] bool over() const noexcept { return body_.over(); }
  // Records that the response has begun. The reader then sends no status 100, even if the client is
  // waiting for it.
  void note_answer() noexcept { may_ask_ = false; }
  // Returns the error of the read that failed, or an empty error code if no read has failed.
  [[nodiscard]] std::error_code error() const noexcept { return error_; }
  [[nodiscard]] std::span<const Header> trailers() const noexcept { return body_.trailers(); }

 private:
  friend class Body;
  // Body::read_some() calls the following functions.
  [[nodiscard]] std::string_view rest() const noexcept {
    if (!input_.rest().empty()) return input_.rest();
    return {raw_.get() + raw_begin_, raw_end_ - raw_begin_};
  }
  void consume(std::size_t size) noexcept {
    if (!input_.rest().empty()) return input_.consume(size);
    raw_begin_ += size;
  }
  net::Result<std::size_t> receive(std::span<std::byte> room);
  std::error_code receive_more();

  static constexpr std::size_t kRawSize = 8192;
  static constexpr std::uint64_t kMostDiscarded = 64 * 1024;

  Transport& transport_;
  Input& input_;
  Output& output_;
  const Limits& limits_;  // Owned by the server.
  Body body_;
  bool must_ask_;  // True while the client is waiting for status 100.
  bool may_ask_ = true;
  std::error_code error_;
  std::uint64_t most_;  // The largest allowed body, in bytes.
  Allowance allowance_;
  // Holds bytes of a chunked body that arrived after the bytes in input_. The bytes in [raw_begin_,
  // raw_end_) are not decoded yet.
  std::unique_ptr<char[]> raw_;
  std::size_t raw_begin_ = 0;
  std::size_t raw_end_ = 0;
};

}  // namespace weft::http
