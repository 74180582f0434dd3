// Messages without connections: UDP, and Unix datagrams.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/net/unix_address.hpp>
#include <weft/until.hpp>

namespace weft::net {

// The facts about a datagram that has been received.
template <class Where>
struct Received {
  std::size_t size = 0;  // Of what is in the buffer.
  Where from = {};
  bool truncated = false;  // It was larger than the buffer, and the rest is lost.
};

// One of several that are received together: the caller fills in the buffer.
template <class Where>
struct DatagramSlot {
  std::span<std::byte> buffer;
  Received<Where> received = {};
};
// One of several that are sent together.
template <class Where>
struct Outgoing {
  std::span<const std::byte> data;
  Where to = {};  // Not looked at by a connected socket.
};

// A socket that sends and receives datagrams, each whole or not at all: UdpSocket or
// UnixDatagramSocket. It may be connected to one peer, which saves the system looking for the way
// each time. Then it receives from that peer alone, and a later call reports connection_refused if
// no socket listens there. Move-only; closes in the destructor. It must not outlive its runtime.
// One caller receives and one sends at a time, and these may be two; close() may come from any
// caller at any time while the object exists. Calls park the fiber, or block the plain thread,
// until the kernel lets them go on, and try before they wait. Errors of all calls that may wait:
// Errc::timed_out, cancelled, closed; the system's (message_size, ...). They throw std::bad_alloc
// at most; what a datagram says synchronizes with nothing.
template <class Where>
class DatagramSocket {
 public:
  DatagramSocket() noexcept = default;

  // Receives what is sent to `address`; UDP: port 0 asks the system for a free one. Errors:
  // Errc::no_runtime, or the system's. Never parks, as the next four.
  static Result<DatagramSocket> bind(const Where& address);
  // A socket that can only send until it is bound otherwise, to peers of the family of `like`.
  static Result<DatagramSocket> open(const Where& like);
  // As open(), and connected to `peer`. Its own address is the system's choice; a Unix socket has
  // none, so that its peer cannot answer.
  static Result<DatagramSocket> connected(const Where& peer);
  // Connects this socket, or changes its peer.
  [[nodiscard]] std::error_code connect(const Where& peer) noexcept;
  // Takes over a socket of another library, and makes it non-blocking; after an error it remains
  // the caller's.
  static Result<DatagramSocket> adopt(int descriptor);

  // Receives the next datagram. One of zero bytes is one.
  Result<Received<Where>> receive(std::span<std::byte> buffer, const Until& until = {});
  // Receives as many as there are, at least one, by one system call (recvmmsg): fills the first
  // slots, at most 64, and returns how many.
  Result<std::size_t> receive_batch(std::span<DatagramSlot<Where>> slots, const Until& until = {});

  // Sends one datagram to `to`, or, connected, to the peer. UDP drops what a receiver has no room
  // for. A Unix socket waits for it; one that is not connected looks again after pauses of up to 50
  // ms, as the system has no better way.
  [[nodiscard]] std::error_code send_to(std::span<const std::byte> data, const Where& to,
                                        const Until& until = {});
  // As send_to(), to the peer of a connected socket.
  [[nodiscard]] std::error_code send(std::span<const std::byte> data, const Until& until = {});
  // Sends all, in their order, up to 64 by each system call (sendmmsg). After an error, the first
  // `value` of them have been sent. send_batch() needs a connected socket and takes no addresses.
  Result<std::size_t> send_batch_to(std::span<const Outgoing<Where>> batch,
                                    const Until& until = {});
  // As send_batch_to(), to the peer of a connected socket.
  Result<std::size_t> send_batch(std::span<const std::span<const std::byte>> batch,
                                 const Until& until = {});

  // Where it is bound, with the port that the system chose. Never parks. Errors: Errc::closed; the
  // system's.
  Result<Where> local_address() const noexcept;
  // The peer to which it is connected. Never parks. Errors: std::errc::not_connected; Errc::closed;
  // the system's.
  Result<Where> peer_address() const noexcept;
  // Bounds what is kept until it is sent, as ByteStream's does; more is dropped.
  [[nodiscard]] std::error_code set_send_buffer(int bytes) noexcept;
  // As set_send_buffer(), for what has come and not been received.
  [[nodiscard]] std::error_code set_receive_buffer(int bytes) noexcept;
  // UDP: whether datagrams may go to broadcast addresses.
  [[nodiscard]] std::error_code set_broadcast(
      bool allowed) noexcept requires std::same_as<Where, Address>;

  // Ends all calls that wait with Errc::closed; later calls give the same. Call it from anywhere,
  // at any time.
  void close() noexcept { socket_.close(); }
  // False for an empty or closed socket; may be stale when it returns.
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  // The descriptor, which stays open and is the caller's from now on; -1 if there is none. No
  // caller may be using the socket.
  [[nodiscard]] int release() noexcept { return socket_.release(); }
  // For setsockopt and the like: it must stay open and non-blocking. -1 for an empty socket.
  [[nodiscard]] int native_handle() const noexcept { return socket_.descriptor(); }
  // The socket inside, for select()'s cases.
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
