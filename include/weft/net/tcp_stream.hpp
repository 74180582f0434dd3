// A TCP connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>
#include <weft/error.hpp>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/until.hpp>

namespace weft::net {

enum class Shutdown : std::uint8_t { read, write, both };

// A connected stream of bytes. Calls park the fiber, or block the plain thread, until the kernel
// lets them go on. Move-only; closes in the destructor. It must not outlive its runtime.
// One caller reads and one caller writes at a time, and these may be two; a second reader that has
// to wait ends the process with a report. close(), shutdown() and the deadlines may come from
// anybody at any time while the object exists.
// A call tries first, and waits only if the kernel has nothing. Two deadlines bound the wait:
// - the call's own; Deadline::past() tries only;
// - the stream's (set_read_deadline, set_write_deadline), for all later calls and for one that
//   waits already. Once it has passed, calls fail at once, whether they would have to wait or not.
// Either ends a call with Errc::timed_out; the stream stays usable.
// A fiber that never has to wait lets others run every now and then.
class TcpStream {
 public:
  TcpStream() noexcept = default;
  // For sockets that are connected and registered already.
  explicit TcpStream(Socket socket) noexcept : socket_(std::move(socket)) {}

  // Connects, with TCP_NODELAY set. Errors: Errc::timed_out, Errc::no_runtime from a plain thread
  // without one, or the system's (connection_refused, ...).
  static Result<TcpStream> connect(const Address& address, const Until& until = {});

  // Takes over a connected socket of somebody else's making, and makes it non-blocking. Errors:
  // Errc::no_runtime, Errc::already_watched, or the system's; the descriptor remains the caller's
  // then. Never parks.
  static Result<TcpStream> adopt(int descriptor);
  // The other way round: the descriptor stays open, non-blocking, and is the caller's from now on.
  // The stream is empty then. -1 if it was closed before. Nobody may be using the stream.
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
  // Writes as much as the kernel takes, at least one byte. To a peer that is gone: the system's
  // broken_pipe or connection_reset; never a signal.
  Result<std::size_t> write_some(std::span<const std::byte> data, const Until& until = {});
  // Writes all. After an error, `value` bytes have been taken by the kernel.
  Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until = {});

  // Deadline::never() lifts it.
  void set_read_deadline(Deadline deadline) noexcept;
  void set_write_deadline(Deadline deadline) noexcept;

  // Ends one direction or both: the peer reads the end of the stream, or reads here do. Reads
  // and writes that wait are ended. Never parks.
  [[nodiscard]] std::error_code shutdown(Shutdown direction) noexcept;
  // Whether small writes are sent at once (as they are unless this is called) or gathered.
  [[nodiscard]] std::error_code set_no_delay(bool no_delay) noexcept;
  Result<Address> local_address() const noexcept;
  Result<Address> peer_address() const noexcept;

  // Ends all calls that wait with Errc::closed; later calls give the same.
  void close() noexcept { socket_.close(); }
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  Socket socket_;
};

}  // namespace weft::net
