#include "libs/http/wire/chunk_decoder.hpp"

#include <algorithm>

#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/head_repair.hpp"
#include "libs/http/wire/head_rules.hpp"

namespace weft::http {

ChunkDecoder::Step ChunkDecoder::next(std::string_view input, std::size_t at_most) {
  std::size_t done = 0;
  while (done < input.size()) {
    switch (at_) {
      case At::data: {
        const auto left = static_cast<std::size_t>(std::min<std::uint64_t>(left_, SIZE_MAX));
        const std::size_t size = std::min({input.size() - done, at_most, left});
        left_ -= size;
        if (left_ == 0) at_ = At::data_cr;
        return {State::data, done + size, input.substr(done, size)};
      }
      case At::data_cr:
        if (input[done++] != '\r') return {State::refused, done, {}};
        at_ = At::data_lf;
        break;
      case At::data_lf:
        if (input[done++] != '\n') return {State::refused, done, {}};
        at_ = At::size_begin;
        break;
      case At::trailers: {
        Step step = take_trailers(input.substr(done));
        step.consumed += done;
        return step;
      }
      case At::end:
        return {State::end, done, {}};
      default:
        if (!take_in_size_line(input[done++])) return {State::refused, done, {}};
        break;
    }
  }
  return {at_ == At::end ? State::end : State::wants_more, done, {}};
}

bool ChunkDecoder::take_in_size_line(char byte) noexcept {
  if (at_ == At::size_begin) {
    line_size_ = 0;
    left_ = 0;
  }
  if (++line_size_ > kMaxSizeLine) return false;
  switch (at_) {
    case At::size_begin:
      at_ = At::size;
      return take_digit(byte);
    case At::size:
      if (byte == '\r') at_ = At::size_end;
      if (byte == ';') at_ = At::extension;
      return at_ != At::size || take_digit(byte);
    case At::extension:
      if (byte == '\r') {
        at_ = At::size_end;
        return true;
      }
      return is_value_char(byte);
    default:  // size_end
      at_ = left_ == 0 ? At::trailers : At::data;
      return byte == '\n' && is_worth_its_line();
  }
}

// Returns false if the peer has sent too many size lines for too little data. A peer may send some
// small chunks and extensions, but must not keep the reader busy with them.
bool ChunkDecoder::is_worth_its_line() noexcept {
  const std::uint64_t granted = 16 + 2 * left_;
  waste_ += line_size_;
  waste_ -= std::min(waste_, granted);
  return waste_ <= kMaxWaste;
}

bool ChunkDecoder::take_digit(char byte) noexcept {
  std::uint64_t digit = 0;
  if (byte >= '0' && byte <= '9') {
    digit = static_cast<std::uint64_t>(byte - '0');
  } else if ((byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F')) {
    digit = static_cast<std::uint64_t>((byte | 0x20) - 'a') + 10;
  } else {
    return false;
  }
  if (left_ >> 56 != 0) return false;  // No body has that many bytes.
  left_ = left_ * 16 + digit;
  return true;
}

// Consumes bytes up to the blank line. Collects the trailer lines, and parses them once all have
// arrived.
ChunkDecoder::Step ChunkDecoder::take_trailers(std::string_view input) {
  std::size_t done = 0;
  while (done < input.size()) {
    const std::size_t line_end = input.find('\n', done);
    const std::size_t end = line_end == std::string_view::npos ? input.size() : line_end + 1;
    if (trailer_text_.size() + (end - done) > max_trailer_bytes_ + 2) {
      return {State::refused, done, {}, Errc::head_too_large};
    }
    trailer_text_.append(input.substr(done, end - done));
    done = end;
    if (line_end == std::string_view::npos) break;
    if (trailer_text_ == "\r\n" || trailer_text_.ends_with("\r\n\r\n")) {
      at_ = At::end;
      if (folds_ == Folds::replaced) unfold(trailer_text_);
      const bool good = parse_trailers();
      if (trailers_.size() > max_trailers_) return {State::refused, done, {}, Errc::head_too_large};
      return {good ? State::end : State::refused, done, {}, Errc::malformed_trailer};
    }
    // Rejects a bare LF immediately. The parser finds other errors once all lines have arrived.
    if (!trailer_text_.ends_with("\r\n"))
      return {State::refused, done, {}, Errc::malformed_trailer};
  }
  return {State::wants_more, done, {}};
}

bool ChunkDecoder::parse_trailers() {
  std::string_view text = trailer_text_;
  while (text != "\r\n") {
    const std::size_t end = text.find("\r\n");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
    std::string_view value = line.substr(colon + 1);
    if (!std::all_of(value.begin(), value.end(), is_value_char)) return false;
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) {
      value.remove_prefix(1);
    }
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    trailers_.push_back({line.substr(0, colon), value});
    if (trailers_.size() > max_trailers_) return true;
  }
  return true;
}

}  // namespace weft::http
