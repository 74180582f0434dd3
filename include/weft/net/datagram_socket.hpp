// Sends and receives datagrams, over UDP or Unix sockets.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/net/unix_address.hpp>
#include <weft/until.hpp>

namespace weft::net {

// Describes a received datagram.
template <class Where>
struct Received {
  std::size_t size = 0;  // The number of bytes in the buffer.
  Where from = {};
  bool truncated = false;  // The datagram was larger than the buffer; the remaining bytes are lost.
};

// Receives one datagram of a batch into the caller's buffer.
template <class Where>
struct DatagramSlot {
  std::span<std::byte> buffer;
  Received<Where> received = {};
};
// Describes a datagram to send in a batch.
template <class Where>
struct Outgoing {
  std::span<const std::byte> data;
  Where to = {};  // Overrides the peer of a connected socket.
};

// Sends and receives whole datagrams (UdpSocket, UnixDatagramSocket). A socket may be connected to
// one peer, so that the system need not look up a route for each datagram. A connected socket
// receives only from its peer. If no socket has the peer's address, a send or a later call may
// report connection_refused. A socket is move-only, is closed by the destructor, and must not
// outlive its runtime. One caller may receive while another sends; close() is allowed at any time.
// Context: fibers and plain threads; calls that take an Until park if they cannot finish at once.
// Errors: Errc::timed_out, cancelled, closed, no_runtime, already_watched; system errors.
// Throws: std::bad_alloc.
template <class Where>
class DatagramSocket {
 public:
  DatagramSocket() noexcept = default;

  // Makes a socket that receives datagrams sent to `address`. UDP port 0 requests a free port.
  // Errors: also address_in_use, permission_denied.
  static Result<DatagramSocket> bind(const Where& address);
  // Makes an unbound socket, which can send to peers with the address family of `like`.
  static Result<DatagramSocket> open(const Where& like);
  // Makes a socket as open() does, and connects it to `peer`. The system chooses the local address.
  // A Unix socket gets no address, so its peer cannot answer.
  static Result<DatagramSocket> connected(const Where& peer);
  // Connects this socket, or changes its peer.
  [[nodiscard]] Result<void> connect(const Where& peer) noexcept;
  // Takes another library's socket and makes it non-blocking; on error, the caller still owns it.
  static Result<DatagramSocket> adopt(int descriptor);

  // Receives the next datagram, which may be empty.
  Result<Received<Where>> receive(std::span<std::byte> buffer,
                                  const Until& until = Until::ambient());
  // Waits for a datagram, and receives up to 64 datagrams in one system call (recvmmsg). Fills one
  // slot per datagram, and returns the number of filled slots.
  Result<std::size_t> receive_batch(std::span<DatagramSlot<Where>> slots,
                                    const Until& until = Until::ambient());

  // Sends a datagram to `to`. UDP drops the datagram if the receiver has no room. A Unix socket
  // waits for room. An unconnected Unix socket polls with pauses of up to 50 ms, because the system
  // does not report when the receiver has room.
  [[nodiscard]] Result<void> send_to(std::span<const std::byte> data, const Where& to,
                                     const Until& until = Until::ambient());
  // Sends a datagram to the peer of a connected socket.
  [[nodiscard]] Result<void> send(std::span<const std::byte> data,
                                  const Until& until = Until::ambient());
  // Sends all datagrams in order, up to 64 with each system call (sendmmsg). After an error,
  // `value` is the number of datagrams that were sent.
  Result<std::size_t> send_batch_to(std::span<const Outgoing<Where>> batch,
                                    const Until& until = Until::ambient());
  // Sends all datagrams to the peer of a connected socket, as send_batch_to() does.
  Result<std::size_t> send_batch(std::span<const std::span<const std::byte>> batch,
                                 const Until& until = Until::ambient());

  // Returns the socket's address, with the port that the system chose.
  Result<Where> local_address() const noexcept;
  // Returns the peer's address.
  // Errors: also std::errc::not_connected.
  Result<Where> peer_address() const noexcept;
  // Limits the unsent bytes, as ByteStream::set_send_buffer() does.
  [[nodiscard]] Result<void> set_send_buffer(int bytes) noexcept;
  // Limits the unread bytes of a UDP socket. At this limit, the kernel drops further datagrams.
  [[nodiscard]] Result<void> set_receive_buffer(int bytes) noexcept;
  // Sets whether UDP datagrams may go to broadcast addresses.
  [[nodiscard]] Result<void> set_broadcast(
      bool allowed) noexcept requires std::same_as<Where, Address>;

  // Waiting calls and later calls end with Errc::closed. May be called at any time.
  void close() noexcept { socket_.close(); }
  // Returns false for an empty or closed socket; may be stale.
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  // Gives the caller the open descriptor; returns -1 if there is none. No call may be active.
  [[nodiscard]] int release() noexcept { return socket_.release(); }
  // Returns the descriptor, or -1. Leave it open and non-blocking. It is invalid after close().
  [[nodiscard]] int native_handle() const noexcept { return socket_.descriptor(); }
  // Returns the socket, for select cases.
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  explicit DatagramSocket(Socket socket) noexcept : socket_(std::move(socket)) {}

  Socket socket_;
};

using UdpSocket = DatagramSocket<Address>;
using UnixDatagramSocket = DatagramSocket<UnixAddress>;

extern template class DatagramSocket<Address>;
extern template class DatagramSocket<UnixAddress>;

}  // namespace weft::net
