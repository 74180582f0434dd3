// The common part of connections, whatever carries them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>
#include <weft/error.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/until.hpp>

namespace weft::net {

enum class Shutdown : std::uint8_t { read, write, both };

// A connected stream of bytes: a TcpStream or a UnixStream. Calls park the fiber, or block the
// plain thread, until the kernel lets them go on. Move-only; closes in the destructor. It must not
// outlive its runtime.
// One caller reads and one caller writes at a time, and these may be two. A second reader that has
// to wait ends the process with a report. close(), shutdown() and the deadlines may come from any
// caller at any time while the object exists.
// A call tries first, and waits only if the kernel has nothing. Two deadlines bound the wait:
// - the call's own; Deadline::past() tries only;
// - the stream's (set_read_deadline, set_write_deadline), for all later calls and for one that
//   waits already. Once it has passed, calls fail at once, whether they would have to wait or not.
// Either ends a call with Errc::timed_out; the stream stays usable.
// A fiber that never has to wait lets others run every now and then. Calls throw and synchronize
// where they say so.
class ByteStream {
 public:
  ByteStream() noexcept = default;
  // For sockets that are connected and registered already.
  explicit ByteStream(Socket socket) noexcept : socket_(std::move(socket)) {}

  // The descriptor stays open, non-blocking, and is the caller's from now on. The stream is empty
  // then. -1 if it was closed before. No caller may be using the stream.
  [[nodiscard]] int release() noexcept { return socket_.release(); }
  // For calls that weft does not wrap: it must stay open and non-blocking. -1 for an empty stream.
  [[nodiscard]] int native_handle() const noexcept { return socket_.descriptor(); }

  // Waits until a read would not have to: there are bytes, the end or an error. So a connection
  // that is idle needs no buffer. Errors: Errc::timed_out, cancelled, closed.
  [[nodiscard]] std::error_code wait_readable(const Until& until = {});
  // Reads what there is, at least one byte. At the end of the stream: Errc::end_of_stream. An
  // empty buffer gives 0 at once.
  Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until = {});
  // Fills the buffer. After an error, `value` bytes at its start have been read.
  Result<std::size_t> read_exactly(std::span<std::byte> buffer, const Until& until = {});
  // As read_some(), into several buffers by one system call: each is full before the next one gets
  // a byte. The first 64 of them count.
  Result<std::size_t> read_scattered(std::span<const std::span<std::byte>> buffers,
                                     const Until& until = {});
  // Writes as much as the kernel takes, at least one byte. To a peer that is gone: the system's
  // broken_pipe or connection_reset; never a signal.
  Result<std::size_t> write_some(std::span<const std::byte> data, const Until& until = {});
  // Writes all. After an error, `value` bytes have been taken by the kernel.
  Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until = {});
  // The same for several pieces, one behind the other, without copying them together: up to 64 by
  // each system call.
  Result<std::size_t> write_gathered(std::span<const std::span<const std::byte>> pieces,
                                     const Until& until = {});
  // Writes `size` bytes of an open file, from `offset` on, without bringing them into the process.
  // The file's own position stays. Bytes that the system does not hold in memory yet are read on a
  // thread of file_group() (weft/files.hpp), so the worker never waits for a disk. After an error,
  // `value` bytes have been taken by the kernel. Errors: as write_all(); Errc::end_of_stream: the
  // file ends before; the system's.
  Result<std::uint64_t> send_file(int file, std::uint64_t offset, std::uint64_t size,
                                  const Until& until = {});

  // Deadline::never() lifts it.
  void set_read_deadline(Deadline deadline) noexcept;
  // As set_read_deadline(), for writes.
  void set_write_deadline(Deadline deadline) noexcept;

  // Ends one direction or both: the peer reads the end of the stream, or reads here do. Reads
  // and writes that wait are ended. Never parks.
  [[nodiscard]] std::error_code shutdown(Shutdown direction) noexcept;
  // How many bytes the kernel keeps: sent, but not yet taken by the peer; come, but not yet read.
  // It doubles the figure for what it needs itself, and caps it (net.core.wmem_max, rmem_max).
  [[nodiscard]] std::error_code set_send_buffer(int bytes) noexcept;
  // As set_send_buffer(), for what has come and not been read.
  [[nodiscard]] std::error_code set_receive_buffer(int bytes) noexcept;

  // Ends all calls that wait with Errc::closed; later calls give the same.
  void close() noexcept { socket_.close(); }
  // False for an empty or closed stream; may be stale when it returns.
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  // The socket inside, for select()'s cases and setsockopt.
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 protected:
  Socket socket_;
};

}  // namespace weft::net
