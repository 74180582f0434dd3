// The body of a request, as it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <weft/http/header.hpp>
#include <weft/net/result.hpp>

#include "libs/http/server/allowance.hpp"
#include "libs/http/wire/chunk_decoder.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

class Connection;
class Input;
class Output;

// Reads a body of either framing, from what has come with the head and then from the connection.
class BodyReader {
 public:
  BodyReader(Connection& connection, Input& input, Output& output, const Head& head) noexcept;

  // See Request::read_some().
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  // Reads what is left, if that is little. False: the connection cannot be used any more.
  [[nodiscard]] bool discard();
  // False: it is known already that discard() would fail.
  [[nodiscard]] bool may_be_discarded() const noexcept;
  // Moves the bytes that have come after the body to the front of the input, once it is over.
  void give_back();

  [[nodiscard]] bool over() const noexcept { return over_; }
  // The answer begins: a client that waits to be asked for the body is not asked any more.
  void note_answer() noexcept { may_ask_ = false; }
  // Why the body cannot be read to its end; empty if nothing has failed.
  [[nodiscard]] std::error_code error() const noexcept { return error_; }
  [[nodiscard]] std::span<const Header> trailers() const noexcept {
    return decoder_ ? decoder_->trailers() : std::span<const Header>();
  }

 private:
  net::Result<std::size_t> read_plain(std::span<std::byte> buffer);
  net::Result<std::size_t> read_chunked(std::span<std::byte> buffer);
  // Reads from the connection, and waits for it.
  net::Result<std::size_t> receive(std::span<char> room);
  [[nodiscard]] std::error_code fail(std::error_code error) noexcept;

  static constexpr std::size_t kRawSize = 8192;
  static constexpr std::uint64_t kMostDiscarded = 64 * 1024;

  Connection& connection_;
  Input& input_;
  Output& output_;
  bool over_;
  bool must_ask_;  // The client waits to be asked for the body, and has not been.
  bool may_ask_ = true;
  std::error_code error_;
  std::uint64_t left_;  // Bytes of a body of known length; otherwise bytes that are allowed.
  Allowance allowance_;
  std::optional<ChunkDecoder> decoder_;
  // Chunks that have been received behind the input; [raw_begin_, raw_end_) is not decoded yet.
  std::unique_ptr<char[]> raw_;
  std::size_t raw_begin_ = 0;
  std::size_t raw_end_ = 0;
};

}  // namespace weft::http
