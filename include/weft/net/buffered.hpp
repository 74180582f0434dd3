// Reading by lines and sizes, and writing in large pieces, over any stream of bytes.
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

// A stream of any type that can be read, or written, by its address.
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

// A type without such members has free functions, as io::Watch.
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

// The errors that a BufferedReader adds to its stream's.
enum class ReadErrc {
  truncated = 1,  // The stream ended within a line or a size.
  too_long,       // The line or the size exceeds ReaderOptions::longest.
};

// The category of ReadErrc; its name is "weft.read". It lives as long as the process. Callers may
// be fibers and plain threads. Never parks, throws or synchronizes.
[[nodiscard]] const std::error_category& read_category() noexcept;

// Makes a std::error_code, so that they compare: `result.error == ReadErrc::too_long`. Callers may
// be fibers and plain threads. Never parks, throws or synchronizes.
[[nodiscard]] inline std::error_code make_error_code(ReadErrc code) noexcept {
  return {static_cast<int>(code), read_category()};
}

}  // namespace weft::net

template <>
struct std::is_error_code_enum<weft::net::ReadErrc> : std::true_type {};

namespace weft::net {

struct ReaderOptions {
  std::size_t capacity = 4096;   // Bytes that one read may ask the stream for; at least 1.
  std::size_t longest = 65'536;  // Bytes of a line without its '\n', or of a peek().
};

// Reads a stream by lines, delimiters and sizes. The stream is a TcpStream, UnixStream,
// tls::Stream, io::Watch, or any type with a read_some() like theirs. The stream remains the
// caller's, must not move, and must live at least as long as the reader.
// All reads of the stream go through the reader, which reads ahead. One caller uses a reader at a
// time, from a fiber or a plain thread; another caller may write to the stream meanwhile. Calls
// park, as the stream's do, if the buffer does not hold enough. They throw std::bad_alloc, and
// synchronize with nothing.
// Errors of the stream are returned, after which a call may be repeated, since bytes that have come
// stay in the buffer. Errc::end_of_stream: the stream ended and nothing is left.
// ReadErrc::truncated: the stream ended within the line or the size; `value` has what came of it,
// which is read by that. ReadErrc::too_long: the line or the size exceeds `longest`; nothing is
// read by that. The views that calls return are valid until the next call. The buffer is allocated
// by the first read, and grows up to `longest` when a line requires it.
class BufferedReader {
 public:
  // Never parks. Does not read yet.
  template <class Stream>
  explicit BufferedReader(Stream& stream, const ReaderOptions& options = {}) noexcept
      : BufferedReader(detail::source_of(stream), options) {}
  BufferedReader(const BufferedReader&) = delete;
  BufferedReader& operator=(const BufferedReader&) = delete;
  // Drops what was read ahead.
  ~BufferedReader() = default;

  // The next line without its end, which is "\n" or "\r\n".
  Result<std::string_view> read_line(const Until& until = {});
  // The bytes before the next `delimiter`, which is read, too.
  Result<std::string_view> read_until(char delimiter, const Until& until = {});
  // The next `size` bytes.
  Result<std::string_view> read_exactly(std::size_t size, const Until& until = {});
  // Fills `buffer`, which may be larger than `longest`. After an error, `value` bytes have been
  // read into its start.
  Result<std::size_t> read_exactly(std::span<std::byte> buffer, const Until& until = {});
  // At least one byte, as the stream's: what the buffer holds, otherwise by one read.
  Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until = {});
  // The next `size` bytes, which remain to be read. After an error, `value` has what came.
  Result<std::string_view> peek(std::size_t size, const Until& until = {});

  // What has been read ahead. Never parks.
  [[nodiscard]] std::string_view buffered() const noexcept;

 private:
  BufferedReader(detail::ByteSource source, const ReaderOptions& options) noexcept;
  std::error_code fill(const Until& until);
  std::string_view take(std::size_t size) noexcept;

  detail::ByteSource source_;
  ReaderOptions options_;
  std::vector<char> room_;
  std::size_t begin_ = 0;  // What was read ahead lies in room_[begin_, end_).
  std::size_t end_ = 0;
};

// Gathers small writes to a stream, which is of the kinds that a BufferedReader takes, with a
// write_all(). The stream remains the caller's, must not move, and must live at least as long.
// One caller uses a writer at a time, from a fiber or a plain thread; another caller may read from
// the stream meanwhile. The destructor drops what has not been flushed: it could not report an
// error. Calls park, as the stream's do, while there is no room. They throw std::bad_alloc, and
// synchronize with nothing. Errors are the stream's. A call may be repeated after an error:
// the bytes that the stream has not taken remain in the buffer.
class BufferedWriter {
 public:
  // Never parks. `capacity`: bytes, 0: each write goes to the stream.
  template <class Stream>
  explicit BufferedWriter(Stream& stream, std::size_t capacity = 4096) noexcept
      : BufferedWriter(detail::sink_of(stream), capacity) {}
  BufferedWriter(const BufferedWriter&) = delete;
  BufferedWriter& operator=(const BufferedWriter&) = delete;
  // Drops what has not been flushed.
  ~BufferedWriter() = default;

  // Puts `data` into the buffer if there is room, otherwise flushes first. What is not smaller than
  // the buffer goes to the stream without a copy. After an error, `value` bytes have been accepted.
  Result<std::size_t> write(std::span<const std::byte> data, const Until& until = {});
  // The same for text.
  Result<std::size_t> write(std::string_view text, const Until& until = {});
  // Hands what is in the buffer to the stream.
  [[nodiscard]] std::error_code flush(const Until& until = {});

  // The bytes that wait for a flush. Never parks.
  [[nodiscard]] std::size_t buffered() const noexcept { return waiting_.size(); }
  // The bytes that may wait for a flush. Never parks.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  BufferedWriter(detail::ByteSink sink, std::size_t capacity) noexcept;

  detail::ByteSink sink_;
  std::size_t capacity_;
  std::vector<std::byte> waiting_;
};

}  // namespace weft::net
