// Reads the body of a message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <weft/error.hpp>
#include <weft/http/error.hpp>
#include <weft/http/header.hpp>
#include <weft/net/result.hpp>

#include "libs/http/wire/chunk_decoder.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

// Finds the data and the end of a body, whatever its framing. The source that provides the bytes
// must have four functions:
//
//   rest() returns the received bytes that have not been consumed.
//
//   consume(size) consumes that many of these bytes.
//
//   receive(buffer) reads directly into the caller's buffer, and returns a Result.
//
//   receive_more() adds bytes to rest(), or returns end_of_stream if the stream has ended.
class Body {
 public:
  // Constructs an empty body.
  Body() noexcept = default;
  // Constructs the body of `head`. `most` is the largest total size of its chunks, in bytes.
  explicit Body(const Head& head,
                std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) noexcept
      : framing_(head.framing),
        over_(head.framing == Framing::none ||
              (head.framing == Framing::length && head.content_length == 0)),
        left_(head.framing == Framing::length ? head.content_length : most) {}
  // Sets the decoder, which a chunked body must have before the first read.
  void decode_by(ChunkDecoder&& decoder) noexcept { decoder_.emplace(std::move(decoder)); }
  // Sets the largest total size of the chunks, in bytes. Must be called before the first read.
  void bound_chunks(std::uint64_t most) noexcept {
    if (decoder_) left_ = most;
  }

  // Reads at least one byte, unless `buffer` is empty. Errors: end_of_stream at the body's end;
  // unexpected_end if the stream ends earlier; body_too_large if the chunks exceed their limit;
  // errors of the source and the decoder.
  template <class Source>
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, Source& source) {
    if (over_) return {.error = weft::Errc::end_of_stream};
    if (buffer.empty()) return {};
    return decoder_ ? read_chunked(buffer, source) : read_plain(buffer, source);
  }

  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] bool is_chunked() const noexcept { return decoder_.has_value(); }
  // Returns how many bytes are missing; for a chunked body, how many bytes may still arrive.
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }
  [[nodiscard]] std::span<const Header> trailers() const noexcept {
    return decoder_ ? decoder_->trailers() : std::span<const Header>();
  }

 private:
  template <class Source>
  net::Result<std::size_t> read_plain(std::span<std::byte> buffer, Source& source) {
    const bool is_counted = framing_ == Framing::length;
    if (is_counted) {
      buffer =
          buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), left_)));
    }
    std::size_t count = std::min(buffer.size(), source.rest().size());
    if (count > 0) {
      (void)source.rest().copy(reinterpret_cast<char*>(buffer.data()), count);
      source.consume(count);
    } else {
      const net::Result<std::size_t> received = source.receive(buffer);
      if (received.error == weft::Errc::end_of_stream) {
        if (is_counted) return {.error = Errc::unexpected_end};
        over_ = true;
      }
      if (received.error) return received;
      count = received.value;
    }
    if (is_counted) {
      left_ -= count;
      over_ = left_ == 0;
    }
    return {.value = count};
  }

  template <class Source>
  net::Result<std::size_t> read_chunked(std::span<std::byte> buffer, Source& source) {
    for (;;) {
      const ChunkDecoder::Step step = decoder_->next(source.rest(), buffer.size());
      (void)step.data.copy(reinterpret_cast<char*>(buffer.data()), step.data.size());
      source.consume(step.consumed);
      switch (step.state) {
        case ChunkDecoder::State::data:
          if (step.data.size() > left_) return {.error = Errc::body_too_large};
          left_ -= step.data.size();
          return {.value = step.data.size()};
        case ChunkDecoder::State::end:
          over_ = true;
          return {.error = weft::Errc::end_of_stream};
        case ChunkDecoder::State::refused:
          return {.error = step.error};
        case ChunkDecoder::State::wants_more:
          break;
      }
      const std::error_code error = source.receive_more();
      if (error == weft::Errc::end_of_stream) return {.error = Errc::unexpected_end};
      if (error) return {.error = error};
    }
  }

  Framing framing_ = Framing::none;
  bool over_ = true;
  std::uint64_t left_ = 0;
  std::optional<ChunkDecoder> decoder_;
};

}  // namespace weft::http
