// Provides streams for libraries that use Boost.Asio, so that the synchronous calls of Beast,
// ssl::stream and others run on fibers. This header requires Boost's headers, but no Asio thread.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>
#include <weft/asio/library.hpp>
#include <weft/error.hpp>
#include <weft/net/tcp_stream.hpp>

#if defined(WEFT_ASIO_STANDALONE)
#error "weft/asio/stream.hpp is for Boost's Asio"
#endif

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {

namespace detail {

// Some libraries require an executor from each stream, to create timers that synchronous calls
// never use. No thread runs the context of this executor.
inline boost::asio::io_context& unused_context() {
  static boost::asio::io_context context;
  return context;
}

}  // namespace detail

// Returns the error as Asio reports it: eof, operation_aborted or timed_out. System errors are
// unchanged, and all other errors become protocol_error.
// Context: plain value.
[[nodiscard]] inline boost::system::error_code to_boost(const std::error_code& error) {
  if (!error) return {};
  if (error == Errc::end_of_stream) return boost::asio::error::eof;
  if (error == Errc::cancelled || error == Errc::closed) {
    return boost::asio::error::operation_aborted;
  }
  if (error == Errc::timed_out) return boost::asio::error::timed_out;
  if (error.category() == std::system_category() || error.category() == std::generic_category()) {
    return {error.value(), boost::system::system_category()};
  }
  // The error is from a layer above TCP, such as TLS.
  return boost::system::errc::make_error_code(boost::system::errc::protocol_error);
}

// Models Asio's SyncReadStream and SyncWriteStream on a net::TcpStream, a tls::Stream, or a type
// with the same functions. A SyncStream is move-only. The wrapped stream's deadlines and close()
// can end calls.
// Context: fibers and plain threads, one reader and one writer at a time; reads and writes park.
// Throws: std::bad_alloc.
template <class Stream = net::TcpStream>
class SyncStream {
 public:
  using executor_type = boost::asio::io_context::executor_type;
  using lowest_layer_type = SyncStream;

  // Takes ownership of the stream; the stream's deadlines remain in force.
  explicit SyncStream(Stream stream) noexcept : stream_(std::move(stream)) {}

  // Reads at least one byte, unless the buffers are empty or an error occurs.
  template <class MutableBuffers>
  std::size_t read_some(const MutableBuffers& buffers, boost::system::error_code& error) {
    error = {};
    const auto buffer = first_of<boost::asio::mutable_buffer>(buffers);
    if (buffer.size() == 0) return 0;
    const auto result = stream_.read_some(
        std::span(static_cast<std::byte*>(buffer.data()), buffer.size()), Until::never());
    error = to_boost(result.error);
    return result.error ? 0 : result.value;
  }
  // Writes at least one byte, unless the buffers are empty or an error occurs; returns the number.
  template <class ConstBuffers>
  std::size_t write_some(const ConstBuffers& buffers, boost::system::error_code& error) {
    error = {};
    const auto buffer = first_of<boost::asio::const_buffer>(buffers);
    if (buffer.size() == 0) return 0;
    const auto result = stream_.write_some(
        std::span(static_cast<const std::byte*>(buffer.data()), buffer.size()), Until::never());
    error = to_boost(result.error);
    return result.error ? 0 : result.value;
  }
  // Works like the other read_some(), but throws the error instead of storing it.
  // Throws: the error, as a boost::system::system_error.
  template <class MutableBuffers>
  std::size_t read_some(const MutableBuffers& buffers) {
    boost::system::error_code error;
    const std::size_t count = read_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return count;
  }
  // Works like the other write_some(), but throws the error instead of storing it.
  // Throws: the error, as a boost::system::system_error.
  template <class ConstBuffers>
  std::size_t write_some(const ConstBuffers& buffers) {
    boost::system::error_code error;
    const std::size_t count = write_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return count;
  }

  // Returns an executor whose context no thread runs; libraries require that streams have one.
  [[nodiscard]] executor_type get_executor() noexcept {
    return detail::unused_context().get_executor();
  }
  // Returns this stream, which is the lowest layer with Asio's interface.
  [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return *this; }
  [[nodiscard]] const lowest_layer_type& lowest_layer() const noexcept { return *this; }
  // Returns the wrapped stream, for example to set its deadlines.
  [[nodiscard]] Stream& stream() noexcept { return stream_; }
  // Makes waiting calls and later calls fail with operation_aborted; buffered bytes stay readable.
  void close() noexcept { stream_.close(); }

 private:
  // Returns the first nonempty buffer; one suffices, because a call may transfer only some bytes.
  template <class Buffer, class Buffers>
  static Buffer first_of(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto part = boost::asio::buffer_sequence_begin(buffers); part != end; ++part) {
      const Buffer buffer(*part);
      if (buffer.size() > 0) return buffer;
    }
    return {};
  }

  Stream stream_;
};

// Ends a WebSocket's connection. Only Beast calls it.
// Context: Beast; does not park.
// Throws: nothing.
template <class Stream>
void teardown(boost::beast::role_type /*role*/, SyncStream<Stream>& stream,
              boost::system::error_code& error) {
  error = {};
  stream.close();
}
// Drops a connection. Only Beast calls it.
// Context: Beast; does not park.
// Throws: nothing.
template <class Stream>
void beast_close_socket(SyncStream<Stream>& stream) {
  stream.close();
}

}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio
