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

// Reads a body of either framing: first the bytes that arrived with the head, and then bytes from
// the connection.
class BodyReader {
 public:
  BodyReader(Transport& transport, Input& input, Output& output, const Head& head,
             const Limits& limits) noexcept;

  // Replaces the server's limits for the body and the answer. Must be called before the first read.
  void set_limits(const RequestLimits& limits) noexcept;
  // See Request::read_some().
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  // Reads the rest of a body if it is small. Returns false if the connection is no longer usable.
  [[nodiscard]] bool discard();
  // Returns false if discard() is already known to fail.
  [[nodiscard]] bool may_be_discarded() const noexcept;
  // After the body has ended, moves the bytes that follow it to the front of the input.
  void give_back();

  [[nodiscard]] bool over() const noexcept { return body_.over(); }
  // Called when the answer begins: from now on, a client that waits for status 100 does not receive
  // it.
  void note_answer() noexcept { may_ask_ = false; }
  // Returns why the body cannot be read to its end; empty if no read has failed.
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
  bool must_ask_;  // The client still waits for status 100.
  bool may_ask_ = true;
  std::error_code error_;
  std::uint64_t most_;  // The largest allowed body, in bytes.
  Allowance allowance_;
  // Received chunks, stored after the input; [raw_begin_, raw_end_) is not decoded yet.
  std::unique_ptr<char[]> raw_;
  std::size_t raw_begin_ = 0;
  std::size_t raw_end_ = 0;
};

}  // namespace weft::http
