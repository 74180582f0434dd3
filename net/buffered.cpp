#include <weft/detail/first_use.hpp>
#include <weft/net/buffered.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <weft/error.hpp>

namespace weft::net {

namespace {

class ReadCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft.read"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<ReadErrc>(code)) {
      case ReadErrc::truncated:
        return "the stream ended within a line, or before the requested number of bytes";
      case ReadErrc::too_long:
        return "the line or the size exceeds ReaderOptions::longest: raise it, or end the "
               "connection";
    }
    return "unknown error of a reader";
  }
};
constinit detail::StaticObject<ReadCategory> read_errors;

}  // namespace

const std::error_category& read_category() noexcept { return read_errors.get(); }

BufferedReader::BufferedReader(detail::ByteSource source, const ReaderOptions& options) noexcept
    : source_(source), options_(options) {
  options_.capacity = std::max<std::size_t>(options_.capacity, 1);
}

std::string_view BufferedReader::buffered() const noexcept {
  return {room_.data() + begin_, end_ - begin_};
}

std::string_view BufferedReader::take(std::size_t size) noexcept {
  const std::string_view taken = buffered().substr(0, size);
  begin_ += taken.size();
  return taken;
}

// Reads once, and appends to the buffered bytes. This moves the buffer, so earlier views become
// invalid.
std::error_code BufferedReader::fill(const Until& until) {
  if (begin_ > 0) {
    std::copy(room_.begin() + static_cast<std::ptrdiff_t>(begin_),
              room_.begin() + static_cast<std::ptrdiff_t>(end_), room_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == room_.size()) room_.resize(std::max(options_.capacity, 2 * end_));
  const auto [count, error] =
      source_.read(source_.stream, std::as_writable_bytes(std::span(room_).subspan(end_)), until);
  if (!error) end_ += count;
  return error;
}

Result<std::string_view> BufferedReader::read_until(char delimiter, const Until& until) {
  for (std::size_t seen = 0;;) {
    const std::size_t at = buffered().find(delimiter, seen);
    const bool is_found = at != std::string_view::npos;
    if (is_found && at <= options_.longest) {
      const std::string_view found = take(at);
      ++begin_;
      return {.value = found};
    }
    seen = buffered().size();
    if (is_found || seen > options_.longest) return {.error = ReadErrc::too_long};
    const std::error_code error = fill(until);
    if (error == Errc::end_of_stream && seen > 0) {
      return {.value = take(seen), .error = ReadErrc::truncated};
    }
    if (error) return {.error = error};
  }
}

Result<std::string_view> BufferedReader::read_line(const Until& until) {
  auto [line, error] = read_until('\n', until);
  if (!error && line.ends_with('\r')) line.remove_suffix(1);
  return {.value = line, .error = error};
}

Result<std::string_view> BufferedReader::peek(std::size_t size, const Until& until) {
  if (size > std::max(options_.longest, options_.capacity)) return {.error = ReadErrc::too_long};
  while (buffered().size() < size) {
    const std::error_code error = fill(until);
    if (!error) continue;
    const bool is_part = error == Errc::end_of_stream && !buffered().empty();
    return {.value = buffered(), .error = is_part ? make_error_code(ReadErrc::truncated) : error};
  }
  return {.value = buffered().substr(0, size)};
}

Result<std::string_view> BufferedReader::read_exactly(std::size_t size, const Until& until) {
  const auto [bytes, error] = peek(size, until);
  if (error && error != ReadErrc::truncated) return {.error = error};
  begin_ += bytes.size();
  return {.value = bytes, .error = error};
}

Result<std::size_t> BufferedReader::read_exactly(std::span<std::byte> buffer, const Until& until) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const auto [count, error] = read_some(buffer.subspan(done), until);
    if (error == Errc::end_of_stream && done > 0) {
      return {.value = done, .error = ReadErrc::truncated};
    }
    if (error) return {.value = done, .error = error};
    done += count;
  }
  return {.value = done};
}

Result<std::size_t> BufferedReader::read_some(std::span<std::byte> buffer, const Until& until) {
  if (buffer.empty()) return {};
  if (buffered().empty()) {
    if (buffer.size() >= options_.capacity) return source_.read(source_.stream, buffer, until);
    if (const std::error_code error = fill(until)) return {.error = error};
  }
  const std::string_view part = take(buffer.size());
  std::memcpy(buffer.data(), part.data(), part.size());
  return {.value = part.size()};
}

BufferedWriter::BufferedWriter(detail::ByteSink sink, std::size_t capacity) noexcept
    : sink_(sink), capacity_(capacity) {}

Result<std::size_t> BufferedWriter::write(std::span<const std::byte> data, const Until& until) {
  const bool bypasses_buffer = data.size() >= capacity_;
  if (bypasses_buffer || data.size() > capacity_ - waiting_.size()) {
    if (const std::error_code error = flush(until)) return {.error = error};
  }
  if (bypasses_buffer) return sink_.write(sink_.stream, data, until);
  waiting_.reserve(capacity_);
  waiting_.insert(waiting_.end(), data.begin(), data.end());
  return {.value = data.size()};
}

Result<std::size_t> BufferedWriter::write(std::string_view text, const Until& until) {
  return write(std::as_bytes(std::span(text)), until);
}

Result<void> BufferedWriter::flush(const Until& until) {
  if (waiting_.empty()) return {};
  const auto [count, error] = sink_.write(sink_.stream, waiting_, until);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  return error;
}

}  // namespace weft::net
