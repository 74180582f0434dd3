// Provides the calls that TCP and Unix connections share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <weft/error.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/until.hpp>

namespace weft::net {

enum class Shutdown : std::uint8_t { read, write, both };

// Reads and writes a connected stream of bytes: a TcpStream or a UnixStream. A stream is move-only,
// is closed by the destructor, and must not outlive its runtime. One caller may read while another
// writes. If two readers or two writers wait at once, the process ends with a report. Any caller
// may call close() and shutdown() and set the deadlines at any time. A call waits only if the
// kernel has no bytes to read or no room to write, or send_file() needs the disk. Other calls yield
// regularly. After a timeout, calls with a later deadline work again. Two deadlines limit a wait:
// - the deadline of the call; with Deadline::past() the call only polls;
// - the deadline of the stream (set_read_deadline, set_write_deadline), which also ends a call that
//   is already waiting. Once it has passed, calls in its direction fail at once.
// Context: fibers and plain threads; calls that take an Until park.
// Errors: Errc::timed_out, cancelled, closed; end_of_stream for reads; system errors.
// Throws: std::bad_alloc.
class ByteStream {
 public:
  ByteStream() noexcept = default;
  // Takes a connected socket that is registered with the poller.
  explicit ByteStream(Socket socket) noexcept : socket_(std::move(socket)) {}

  // Gives the descriptor, open and non-blocking, to the caller; the stream is then empty. Returns
  // -1 if the stream was empty or closed. No call may be in progress.
  [[nodiscard]] int release() noexcept { return socket_.release(); }
  // Returns the descriptor for calls that weft does not wrap; -1 if the stream is empty. The caller
  // must leave it open and non-blocking, and must not use it after close().
  [[nodiscard]] int native_handle() const noexcept { return socket_.descriptor(); }

  // Waits until a read would return without waiting. An idle connection that waits in this call
  // needs no buffer.
  [[nodiscard]] Result<void> wait_readable(const Until& until = Until::ambient());
  // Reads at least one byte. Returns Errc::end_of_stream at the end, and 0 if buffer.size() is 0.
  Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until = Until::ambient());
  // Fills the buffer. After an error, the first `value` bytes of the buffer have been filled.
  Result<std::size_t> read_exactly(std::span<std::byte> buffer,
                                   const Until& until = Until::ambient());
  // Works like read_some(), but reads into up to 64 buffers with one system call. Fills each buffer
  // before the next.
  Result<std::size_t> read_scattered(std::span<const std::span<std::byte>> buffers,
                                     const Until& until = Until::ambient());
  // Writes as many bytes as the kernel accepts, but at least one unless `data` is empty. If the
  // peer is gone, returns the system's broken_pipe or connection_reset, and raises no SIGPIPE.
  Result<std::size_t> write_some(std::span<const std::byte> data,
                                 const Until& until = Until::ambient());
  // Writes all bytes. After an error, the kernel has accepted `value` bytes.
  Result<std::size_t> write_all(std::span<const std::byte> data,
                                const Until& until = Until::ambient());
  // Writes all bytes of `text`.
  Result<std::size_t> write_all(std::string_view text, const Until& until = Until::ambient()) {
    return write_all(std::as_bytes(std::span(text)), until);
  }
  // Writes several pieces in order without joining them, up to 64 with each system call.
  Result<std::size_t> write_gathered(std::span<const std::span<const std::byte>> pieces,
                                     const Until& until = Until::ambient());
  // Writes `size` bytes of an open file, from `offset`, without copying them into the process. The
  // position of the file stays unchanged. A thread of file_group() (weft/files.hpp) reads bytes
  // that are not in memory, so a worker rarely waits for a disk. After an error, the kernel has
  // accepted `value` bytes.
  // Errors: also Errc::end_of_stream if the file ends early; Errc::full if file_group() is full.
  Result<std::uint64_t> send_file(int file, std::uint64_t offset, std::uint64_t size,
                                  const Until& until = Until::ambient());

  // Sets the deadline for reads; Deadline::never() removes it.
  void set_read_deadline(Deadline deadline) noexcept;
  // Sets the deadline for writes; Deadline::never() removes it.
  void set_write_deadline(Deadline deadline) noexcept;

  // Shutdown::read ends the reads on this side. Shutdown::write ends this side's writes and the
  // peer's reads. Waiting calls return. Reads return received bytes first, then end_of_stream.
  [[nodiscard]] Result<void> shutdown(Shutdown direction) noexcept;
  // Sets the size of the kernel's buffer for bytes that are not yet acknowledged. The kernel
  // doubles the number to cover its overhead, and caps it (net.core.wmem_max, rmem_max).
  [[nodiscard]] Result<void> set_send_buffer(int bytes) noexcept;
  // Sets the size of the kernel's buffer for unread bytes. The kernel doubles and caps the size.
  [[nodiscard]] Result<void> set_receive_buffer(int bytes) noexcept;

  // Waiting calls and later calls end with Errc::closed.
  void close() noexcept { socket_.close(); }
  // Returns false for an empty or closed stream; may be stale.
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  // Returns the socket, for select cases and setsockopt.
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 protected:
  Socket socket_;
};

}  // namespace weft::net
