// Copies from one stream to another, and between two streams in both directions.
// Context: fibers and plain threads; calls park.
// Throws: std::bad_alloc.
#pragma once

#include <concepts>
#include <cstdint>
#include <weft/io.hpp>
#include <weft/net/buffered.hpp>
#include <weft/net/byte_stream.hpp>
#include <weft/net/result.hpp>
#include <weft/until.hpp>

namespace weft::detail {

// Represents a stream of any type. If the source and the sink have handles, the kernel can move
// bytes between them.
struct CopySource {
  ByteSource bytes;
  io::IoHandle* handle = nullptr;
};
struct CopySink {
  ByteSink bytes;
  io::IoHandle* handle = nullptr;
  Result<void> (*finish)(void* stream, const Until& until) = nullptr;  // Null if not needed.
};

template <class Stream>
[[nodiscard]] io::IoHandle* handle_of(const Stream& stream) noexcept {
  if constexpr (std::derived_from<Stream, net::ByteStream>) {
    return stream.socket().handle();
  } else if constexpr (std::same_as<Stream, io::Watch>) {
    return stream.handle();
  } else {
    return nullptr;
  }
}

// Shuts down the stream for writing, so that the peer reads the end of the stream.
template <class Stream>
Result<void> finish_writing(void* object, const Until& until) {
  Stream& stream = *static_cast<Stream*>(object);
  if constexpr (requires { stream.shutdown(net::Shutdown::write); }) {
    return stream.shutdown(net::Shutdown::write);
  } else {
    return stream.shutdown(until);
  }
}

template <class Stream>
[[nodiscard]] CopySource copy_source(Stream& stream) noexcept {
  return {source_of(stream), handle_of(stream)};
}
template <class Stream>
[[nodiscard]] CopySink copy_sink(Stream& stream) noexcept {
  return {sink_of(stream), handle_of(stream)};
}
template <class Stream>
[[nodiscard]] CopySink relay_sink(Stream& stream) noexcept {
  return {sink_of(stream), handle_of(stream), &finish_writing<Stream>};
}

Result<std::uint64_t> copy(const CopySource& from, const CopySink& to, const Until& until);

}  // namespace weft::detail

namespace weft::net {

// Copies until the end of `from`, and returns the number of bytes that `to` has accepted, even
// after an error. The streams may have any type that BufferedReader and BufferedWriter accept; the
// call neither closes nor shuts down a stream. Between sockets or pipes, bytes usually do not enter
// the process (splice(2)). Otherwise bytes pass through a buffer of 32 KiB. `until` limits the
// whole call. After an error, some bytes may have been read but not written.
// Errors: the errors of reads from `from` and of writes to `to`.
template <class From, class To>
Result<std::uint64_t> copy(From& from, To& to, const Until& until = Until::ambient()) {
  return detail::copy(detail::copy_source(from), detail::copy_sink(to), until);
}

// Counts the bytes that a relay has copied.
struct Relayed {
  std::uint64_t forward = 0;   // Bytes copied from the first stream to the second.
  std::uint64_t backward = 0;  // Bytes copied from the second stream to the first.
};

}  // namespace weft::net

namespace weft::detail {

Result<net::Relayed> relay(const CopySource& from_first, const CopySink& to_first,
                           const CopySource& from_second, const CopySink& to_second,
                           const Until& until);

}  // namespace weft::detail

namespace weft::net {

// Copies in both directions at once, as a proxy does; one direction runs in a new fiber. If a
// stream ends, the other stream is shut down for writing, and the other direction continues. The
// relay ends when both directions have ended, or when one direction has failed and thereby stopped
// the other. The streams (TcpStream, UnixStream, tls::Stream) remain open.
// Errors: the error of the direction that failed first.
// Throws: also what spawn() throws.
template <class First, class Second>
Result<Relayed> relay(First& first, Second& second, const Until& until = Until::ambient()) {
  return detail::relay(detail::copy_source(first), detail::relay_sink(first),
                       detail::copy_source(second), detail::relay_sink(second), until);
}

}  // namespace weft::net
