// Reads lines and given numbers of bytes from a stream, and gathers small writes to a stream.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/net/result.hpp>
#include <weft/until.hpp>

namespace weft::detail {

// Represents a stream of any type by its address and its functions.
struct ByteSource {
  void* stream = nullptr;
  Result<std::size_t> (*read)(void* stream, std::span<std::byte> buffer,
                              const Until& until) = nullptr;
};
struct ByteSink {
  void* stream = nullptr;
  Result<std::size_t> (*write)(void* stream, std::span<const std::byte> data,
                               const Until& until) = nullptr;
};

template <class Stream>
concept ReadsBytes = requires(Stream& stream, std::span<std::byte> buffer, const Until& until) {
  { stream.read_some(buffer, until) } -> std::same_as<Result<std::size_t>>;
};
template <class Stream>
concept WritesBytes = requires(Stream& stream, std::span<const std::byte> data,
                               const Until& until) {
  { stream.write_all(data, until) } -> std::same_as<Result<std::size_t>>;
};

// Calls the stream's read_some() or write_all(), or a free function if there is no such member.
template <class Stream>
[[nodiscard]] ByteSource source_of(Stream& stream) noexcept {
  return {&stream, [](void* object, std::span<std::byte> buffer, const Until& until) {
            Stream& from = *static_cast<Stream*>(object);
            if constexpr (ReadsBytes<Stream>) {
              return from.read_some(buffer, until);
            } else {
              return read_some(from, buffer, until);
            }
          }};
}
template <class Stream>
[[nodiscard]] ByteSink sink_of(Stream& stream) noexcept {
  return {&stream, [](void* object, std::span<const std::byte> data, const Until& until) {
            Stream& to = *static_cast<Stream*>(object);
            if constexpr (WritesBytes<Stream>) {
              return to.write_all(data, until);
            } else {
              return write_all(to, data, until);
            }
          }};
}

}  // namespace weft::detail

namespace weft::net {

// Lists the errors that a BufferedReader adds to the errors of its stream.
enum class ReadErrc {
  truncated = 1,  // The stream ended within a line or the requested bytes.
  too_long,       // The line or the size exceeds its limit in ReaderOptions.
};

// Returns the category of ReadErrc, named "weft.read". It lives as long as the process.
// Context: plain value.
[[nodiscard]] const std::error_category& read_category() noexcept;

// Converts a ReadErrc, so that codes can be compared: `result.error == ReadErrc::too_long`.
// Context: plain value.
[[nodiscard]] inline std::error_code make_error_code(ReadErrc code) noexcept {
  return {static_cast<int>(code), read_category()};
}

}  // namespace weft::net

template <>
struct std::is_error_code_enum<weft::net::ReadErrc> : std::true_type {};

namespace weft::net {

struct ReaderOptions {
  // The buffer's initial size in bytes, at least 1. A peek() of this size is always allowed.
  std::size_t capacity = 4096;
  std::size_t longest = 65'536;  // The largest size of a line without '\n', or of a peek().
};

// Reads lines, delimited data and given numbers of bytes from a stream. The stream is a TcpStream,
// UnixStream, tls::Stream, io::Watch, or any type with a read_some() like TcpStream's. The caller
// owns the stream, which must not move and must outlive the reader. All reads must use the reader,
// because it reads ahead. Another caller may write to the stream. After a stream error, calls that
// return views may be repeated, because received bytes stay buffered. Views last until the next
// call. The buffer is allocated on first use, and grows to at most twice max(longest, capacity).
// Context: fibers and plain threads, one caller at a time; if the buffer does not hold enough
// bytes, reads park as the stream's reads do.
// Errors: errors of the stream; Errc::end_of_stream if no byte is left. ReadErrc::truncated: the
// stream ended within the line or the requested bytes; `value` holds the bytes that came before the
// end, and all functions except peek() consume these bytes. ReadErrc::too_long: the line or the
// size exceeds its limit in ReaderOptions; all bytes stay unread.
// Throws: std::bad_alloc.
class BufferedReader {
 public:
  // Makes a reader of `stream`. The constructor reads nothing.
  template <class Stream>
  explicit BufferedReader(Stream& stream, const ReaderOptions& options = {}) noexcept
      : BufferedReader(detail::source_of(stream), options) {}
  BufferedReader(const BufferedReader&) = delete;
  BufferedReader& operator=(const BufferedReader&) = delete;
  // Drops bytes that were read ahead.
  ~BufferedReader() = default;

  // Returns the next line without its terminator, "\n" or "\r\n".
  Result<std::string_view> read_line(const Until& until = Until::ambient());
  // Returns the bytes before the next `delimiter`, and skips the delimiter.
  Result<std::string_view> read_until(char delimiter, const Until& until = Until::ambient());
  // Returns the next `size` bytes.
  Result<std::string_view> read_exactly(std::size_t size, const Until& until = Until::ambient());
  // Fills a `buffer` of any size. After any error, it holds `value` bytes, which count as read.
  Result<std::size_t> read_exactly(std::span<std::byte> buffer,
                                   const Until& until = Until::ambient());
  // Reads at least one byte unless `buffer` is empty. If none is buffered, reads the stream once.
  Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until = Until::ambient());
  // Returns the next `size` bytes, which stay unread. After an error, returns fewer than `size`.
  Result<std::string_view> peek(std::size_t size, const Until& until = Until::ambient());

  // Returns the bytes that were read ahead.
  [[nodiscard]] std::string_view buffered() const noexcept;

 private:
  BufferedReader(detail::ByteSource source, const ReaderOptions& options) noexcept;
  std::error_code fill(const Until& until);
  std::string_view take(std::size_t size) noexcept;

  detail::ByteSource source_;
  ReaderOptions options_;
  std::vector<char> room_;
  std::size_t begin_ = 0;  // The bytes that were read ahead are in room_[begin_, end_).
  std::size_t end_ = 0;
};

// Gathers small writes to a stream: an io::Watch or a type with a write_all() like TcpStream's. The
// caller owns the stream, which must not move, and must outlive the writer. Another caller may read
// from the stream. After an error, the buffer keeps unwritten bytes, so flush() may be repeated.
// Context: fibers and plain threads, one caller at a time; writes and flush() park.
// Errors: errors of the stream.
// Throws: std::bad_alloc.
class BufferedWriter {
 public:
  // Makes a writer to `stream` with a buffer of `capacity` bytes. With 0, writes are unbuffered.
  template <class Stream>
  explicit BufferedWriter(Stream& stream, std::size_t capacity = 4096) noexcept
      : BufferedWriter(detail::sink_of(stream), capacity) {}
  BufferedWriter(const BufferedWriter&) = delete;
  BufferedWriter& operator=(const BufferedWriter&) = delete;
  // Drops unflushed bytes, because a destructor cannot report an error.
  ~BufferedWriter() = default;

  // Puts `data` into the buffer, which is flushed first if there is no room. If `data` has at least
  // capacity() bytes, it bypasses the buffer. On error, the stream took `value` bytes of `data`.
  Result<std::size_t> write(std::span<const std::byte> data, const Until& until = Until::ambient());
  // Writes text, as the overload for bytes does.
  Result<std::size_t> write(std::string_view text, const Until& until = Until::ambient());
  // Writes the buffer to the stream.
  [[nodiscard]] Result<void> flush(const Until& until = Until::ambient());

  // Returns the number of unflushed bytes.
  [[nodiscard]] std::size_t buffered() const noexcept { return waiting_.size(); }
  // Returns the size of the buffer in bytes.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  BufferedWriter(detail::ByteSink sink, std::size_t capacity) noexcept;

  detail::ByteSink sink_;
  std::size_t capacity_;
  std::vector<std::byte> waiting_;
};

}  // namespace weft::net
