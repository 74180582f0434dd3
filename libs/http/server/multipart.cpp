// Parses forms with files (RFC 7578, RFC 2046).
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <weft/detail/invariant.hpp>
#include <weft/error.hpp>
#include <weft/http/error.hpp>
#include <weft/http/form.hpp>

#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/head_rules.hpp"
#include "libs/http/wire/list_items.hpp"
#include "libs/http/wire/media_type.hpp"

namespace weft::http {

namespace {

// Returns the delimiter: a line end, two hyphens and the boundary. Returns an empty string if the
// content type is not multipart/form-data, or has no valid boundary.
std::string delimiter_of(std::string_view content_type) {
  if (!equal_tokens(media_type(content_type), "multipart/form-data")) return {};
  bool is_clear = true;
  const auto boundary = parameter_of(content_type, "boundary", is_clear);
  constexpr std::size_t kMost = 70;
  if (!is_clear || !boundary || boundary->empty() || boundary->size() > kMost) return {};
  const bool is_text =
      std::all_of(boundary->begin(), boundary->end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  return is_text && boundary->back() != ' ' ? "\r\n--" + *boundary : std::string();
}

}  // namespace

// Invariants
//   I1  buffer_[begin_, buffer_.size()) holds the received bytes that are not consumed yet. The
//       first `clear_` bytes of this range belong to the part and contain no boundary.
//   I2  Once error_ is set, the reader reads no more.
class Multipart::Reader {
 public:
  Reader(std::string delimiter, Source source, const MultipartLimits& limits)
      : delimiter_(std::move(delimiter)), source_(std::move(source)), limits_(limits) {
    if (delimiter_.empty()) error_ = Errc::unsupported_form;
    buffer_ = "\r\n";  // delimiter_ begins with a line end, which the first boundary lacks.
  }

  std::error_code next() {
    if (std::exchange(before_first_, false)) {
      in_part_ = !error_;
      part_left_ = ~std::uint64_t{0};  // Bytes before the first boundary count towards the total.
    }
    std::array<std::byte, 1024> skipped;
    while (in_part_) (void)read_some(skipped);
    if (!error_) (void)fail(begin_part());
    return error_;
  }

  net::Result<std::size_t> read_some(std::span<std::byte> buffer) {
    if (error_) return {.error = error_};
    if (buffer.empty()) return {};
    while (in_part_ && clear_ == 0 && !error_) look();
    if (error_) return {.error = error_};
    if (!in_part_) return {.error = weft::Errc::end_of_stream};
    WEFT_INVARIANT(clear_ <= buffer_.size() - begin_,
                   "Multipart::Reader I1: clear bytes have arrived");
    const std::size_t count = std::min(clear_, buffer.size());
    if (count > part_left_) return {.error = fail(Errc::form_too_large)};
    part_left_ -= count;
    std::copy_n(reinterpret_cast<const std::byte*>(buffer_.data()) + begin_, count, buffer.data());
    begin_ += count;
    clear_ -= count;
    return {.value = count};
  }

  [[nodiscard]] std::error_code fail(std::error_code error) noexcept {
    in_part_ = in_part_ && !error;
    return error_ = error;
  }

  std::string name;
  std::optional<std::string> filename;
  std::string content_type;

 private:
  [[nodiscard]] std::string_view rest() const noexcept {
    return std::string_view(buffer_).substr(begin_);
  }

  // Reads more of the body, and appends it to the buffer.
  [[nodiscard]] std::error_code fill() {
    WEFT_INVARIANT(!error_, "Multipart::Reader I2: nothing is read after an error");
    constexpr std::size_t kSize = 8192;
    buffer_.erase(0, begin_);
    begin_ = 0;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kSize);
    const auto [count, error] =
        source_(std::as_writable_bytes(std::span(buffer_.data() + before, kSize)));
    buffer_.resize(before + (error ? 0 : count));
    if (error) return error;
    if (count > limits_.total_bytes) return Errc::form_too_large;
    limits_.total_bytes -= count;
    return {};
  }
  // Reads more of the body as fill() does, but fails if the body ends.
  [[nodiscard]] std::error_code fill_within() {
    const std::error_code error = fill();
    return error == weft::Errc::end_of_stream ? make_error_code(Errc::malformed_form) : error;
  }

  // Sets clear_ to the number of received bytes that belong to the part, or clears in_part_ at the
  // part's end, or reads more of the body.
  void look() {
    if (at_start_) {
      look_at_start();
      return;
    }
    const std::size_t found = rest().find(delimiter_);
    if (found == 0) {
      begin_ += delimiter_.size();
      in_part_ = false;
    } else if (found != std::string_view::npos) {
      clear_ = found;
    } else if (rest().size() >= delimiter_.size()) {
      clear_ = rest().size() - delimiter_.size() + 1;  // The other bytes may be part of a boundary.
    } else {
      (void)fail(fill_within());
    }
  }

  // Looks for a boundary at the start of a part. If the part is empty, the line end before it may
  // also begin the boundary, so this line end is not consumed yet.
  void look_at_start() {
    const bool may_begin = std::string_view(delimiter_).starts_with(rest());
    if (may_begin && rest().size() < delimiter_.size()) {
      (void)fail(fill_within());
      return;
    }
    at_start_ = false;
    if (!rest().starts_with(delimiter_)) begin_ += 2;
  }

  // Consumes a header line or the rest of a boundary line, and stores it without its line end.
  [[nodiscard]] std::error_code take_line(std::string& line, std::size_t& most) {
    for (;;) {
      const std::size_t end = rest().find("\r\n");
      const bool is_there = end != std::string_view::npos;
      if ((is_there ? end + 2 : rest().size()) > most) return Errc::form_too_large;
      if (is_there) {
        line = rest().substr(0, end);
        begin_ += end + 2;
        most -= end + 2;
        return {};
      }
      if (const auto error = fill_within()) return error;
    }
  }

  // Parses the text after a boundary: the next part's headers, or the end of the form.
  [[nodiscard]] std::error_code begin_part() {
    while (rest().size() < 2) {
      if (const auto error = fill_within()) return error;
    }
    if (rest().starts_with("--")) {
      std::error_code error;
      while (!error) {
        begin_ = buffer_.size();
        error = fill();
      }
      return error;
    }
    std::string line;
    std::size_t most = limits_.header_bytes;
    if (const auto error = take_line(line, most)) return error;
    if (!trimmed(line).empty()) return Errc::malformed_form;
    if (limits_.parts == 0) return Errc::form_too_large;
    --limits_.parts;
    if (const auto error = read_headers(most)) return error;
    begin_ -= 2;
    in_part_ = at_start_ = true;
    part_left_ = limits_.part_bytes;
    return {};
  }

  [[nodiscard]] std::error_code read_headers(std::size_t most) {
    name.clear();
    filename.reset();
    content_type = "text/plain";
    bool is_named = false;
    for (std::string line;;) {
      if (const auto error = take_line(line, most)) return error;
      if (line.empty()) return is_named ? std::error_code() : Errc::malformed_form;
      const std::size_t colon = line.find(':');
      const std::string_view key = std::string_view(line).substr(0, colon);
      const bool is_text = std::all_of(line.begin(), line.end(), is_value_char);
      if (colon == std::string::npos || !is_token(key) || !is_text) return Errc::malformed_form;
      const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
      if (equal_tokens(key, "content-type")) content_type = value;
      if (!equal_tokens(key, "content-disposition")) continue;
      if (is_named || !read_disposition(value)) return Errc::malformed_form;
      is_named = true;
    }
  }

  [[nodiscard]] bool read_disposition(std::string_view value) {
    bool is_clear = equal_tokens(media_type(value), "form-data");
    auto called = parameter_of(value, "name", is_clear);
    filename = parameter_of(value, "filename", is_clear);
    if (!is_clear || !called) return false;
    name = std::move(*called);
    return true;
  }

  const std::string delimiter_;  // "\r\n--boundary"
  const Source source_;
  MultipartLimits limits_;  // How many more parts and bytes are allowed.
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t clear_ = 0;
  std::uint64_t part_left_ = 0;
  bool before_first_ = true;
  bool in_part_ = false;
  bool at_start_ = false;  // True until the empty line before the part is consumed.
  std::error_code error_;
};

Multipart::Multipart(Request& request, const MultipartLimits& limits)
    : Multipart(
          request.header("content-type").value_or(""),
          [&request](std::span<std::byte> buffer) { return request.read_some(buffer); }, limits) {}

Multipart::Multipart(std::string_view content_type, Source source, const MultipartLimits& limits)
    : reader_(std::make_unique<Reader>(delimiter_of(content_type), std::move(source), limits)) {}

Multipart::~Multipart() = default;

net::Result<void> Multipart::next() { return reader_->next(); }
const std::string& Multipart::name() const noexcept { return reader_->name; }
const std::optional<std::string>& Multipart::filename() const noexcept { return reader_->filename; }
std::string_view Multipart::content_type() const noexcept { return reader_->content_type; }

net::Result<std::size_t> Multipart::read_some(std::span<std::byte> buffer) {
  return reader_->read_some(buffer);
}

net::Result<std::string> Multipart::read_all(std::size_t most) {
  net::Result<std::string> all;
  std::array<char, 4096> part;
  for (;;) {
    const auto [count, error] = read_some(std::as_writable_bytes(std::span(part)));
    if (error == weft::Errc::end_of_stream) return all;
    const bool is_too_large = !error && count > most - all.value.size();
    if (error || is_too_large) {
      all.error = error ? error : reader_->fail(Errc::form_too_large);
      return all;
    }
    all.value.append(part.data(), count);
  }
}

net::Result<std::uint64_t> Multipart::save(files::File& file) {
  constexpr std::size_t kSize = 64 * 1024;  // Large, to limit the number of writes that may block.
  std::vector<std::byte> buffer(kSize);
  std::uint64_t written = 0;
  for (;;) {
    std::size_t filled = 0;
    std::error_code error;
    while (filled < kSize && !error) {
      const auto part = read_some(std::span(buffer).subspan(filled));
      error = part.error;
      if (!error) filled += part.value;
    }
    if (error && error != weft::Errc::end_of_stream) return {.value = written, .error = error};
    const auto result = file.write_all(std::span(buffer).first(filled), written, Until::never());
    if (result.error) return {.value = written, .error = reader_->fail(result.error)};
    written += filled;
    if (error) return {.value = written};
  }
}

net::Result<std::uint64_t> Multipart::save_to(const std::string& path) {
  auto [file, error] = files::File::open(
      path, {.access = files::Access::write, .create = true, .exclusive = true}, Until::never());
  if (error) return {.error = reader_->fail(error)};
  return save(file);
}

}  // namespace weft::http
