// Decodes chunked bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/http/error.hpp>
#include <weft/http/header.hpp>

namespace weft::http {

// Finds the data in a chunked body (RFC 9112, 7.1). Accepts only the strict syntax, so that two
// readers cannot disagree about where the body ends. Bytes may arrive in pieces of any size.
class ChunkDecoder {
 public:
  enum class State : std::uint8_t { wants_more, data, end, refused };
  struct Step {
    State state;
    std::size_t consumed;  // The number of consumed bytes of the input.
    // With State::data: the data, a suffix of the consumed bytes.
    std::string_view data;
    Errc error = Errc::malformed_chunk;  // With State::refused: the reason.
  };

  // Specifies how to treat a trailer that continues on the next line (RFC 9112, 5.2). A server
  // refuses a continued trailer, like a continued header; a client replaces the line end with
  // spaces.
  enum class Folds : std::uint8_t { refused, replaced };

  ChunkDecoder(std::size_t max_trailer_bytes, std::size_t max_trailers,
               Folds folds = Folds::refused) noexcept
      : max_trailer_bytes_(max_trailer_bytes), max_trailers_(max_trailers), folds_(folds) {}

  // Decodes at most `at_most` bytes of data, and stops at the end of the input or of the body.
  [[nodiscard]] Step next(std::string_view input, std::size_t at_most);
  // Returns the trailers; requires that next() has returned State::end. The result is valid while
  // the decoder exists.
  [[nodiscard]] std::span<const Header> trailers() const noexcept { return trailers_; }

 private:
  enum class At : std::uint8_t {
    size_begin,
    size,
    extension,
    size_end,
    data,
    data_cr,
    data_lf,
    trailers,
    end
  };

  [[nodiscard]] bool take_in_size_line(char byte) noexcept;
  [[nodiscard]] bool take_digit(char byte) noexcept;
  [[nodiscard]] bool is_worth_its_line() noexcept;
  [[nodiscard]] Step take_trailers(std::string_view input);
  [[nodiscard]] bool parse_trailers();

  static constexpr std::size_t kMaxSizeLine = 256;
  static constexpr std::size_t kMaxWaste = 16 * 1024;

  std::size_t max_trailer_bytes_;
  std::size_t max_trailers_;
  Folds folds_;
  At at_ = At::size_begin;
  std::uint64_t left_ = 0;  // The number of bytes missing from the current chunk.
  std::size_t line_size_ = 0;
  std::uint64_t waste_ = 0;  // The number of bytes by which size lines exceed their allowance.
  std::string trailer_text_;
  std::vector<Header> trailers_;
};

}  // namespace weft::http
