// Accepts TCP connections.
#pragma once

#include <weft/net/address.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/until.hpp>

namespace weft::net {

struct ListenOptions {
  // The maximum number of connections that wait for accept(); the system caps it
  // (net.core.somaxconn).
  int backlog = 4096;
  // Whether to listen even if connections of an earlier listener on this port are still closing.
  bool reuse_address = true;
  // Whether several listeners share the port; the system spreads connections over them.
  bool reuse_port = false;
  // The maximum number of clients with early bytes (TCP Fast Open) and an incomplete handshake; 0
  // allows none. Early bytes may arrive twice, so the protocol must tolerate repeated bytes. Has no
  // effect if the system does not support it (net.ipv4.tcp_fastopen).
  int fast_open_queue = 0;
};

// Listens for TCP connections. A listener is move-only, is closed by the destructor, and must not
// outlive its runtime. Only one caller at a time may accept. close() may be called at any time.
// Context: fibers and plain threads; accept() parks.
// Errors: Errc::closed; system errors.
// Throws: std::bad_alloc.
class TcpListener {
 public:
  TcpListener() noexcept = default;

  // Listens at `address`.
  // Errors: also Errc::no_runtime on a plain thread without a runtime; address_in_use,
  // permission_denied.
  static Result<TcpListener> listen(const Address& address, const ListenOptions& options = {});

  // Parks until there is a connection, and returns it with TCP_NODELAY set. Skips connections that
  // have ended. Retries after pauses from 1 ms to 1 s while the system lacks descriptors or memory,
  // and up to eight times if a firewall rule forbids the connection (EPERM, EOPNOTSUPP).
  // Errors: also Errc::timed_out, cancelled; the last attempt's error, such as too_many_files_open.
  Result<TcpStream> accept(const Until& until = Until::ambient());

  // Returns the local address, with the port that the system chose.
  Result<Address> local_address() const noexcept;
  // Ends a waiting accept() with Errc::closed.
  void close() noexcept { socket_.close(); }
  // Returns false for an empty or closed listener; may be stale.
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  // Returns the socket, for select cases and setsockopt.
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  explicit TcpListener(Socket socket) noexcept : socket_(std::move(socket)) {}

  Socket socket_;
};

}  // namespace weft::net
