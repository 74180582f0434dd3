// Waiting for TCP connections.
#pragma once

#include <weft/net/address.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/until.hpp>

namespace weft::net {

struct ListenOptions {
  // Connections that may wait to be accepted; the system caps it (net.core.somaxconn).
  int backlog = 4096;
  // Listen even if connections of an earlier listener on this port have not quite ended.
  bool reuse_address = true;
  // Several listeners share the port, and the system spreads connections over them.
  bool reuse_port = false;
  // Clients that may be waiting to be accepted by TCP Fast Open, with bytes that came together with
  // their requests for connections; 0: none. Such bytes may come twice, so only for protocols where
  // that does no harm. Nothing where the system does not know it (net.ipv4.tcp_fastopen).
  int fast_open_queue = 0;
};

// A listening socket. Move-only; closes in the destructor. It must not outlive its runtime.
// One caller accepts at a time; close() may come from any caller while the object exists. Call it
// from fibers and plain threads. Calls park, throw and synchronize where they say so.
class TcpListener {
 public:
  TcpListener() noexcept = default;

  // Errors: Errc::no_runtime from a plain thread without one, or the system's (address_in_use,
  // permission_denied, ...). Never parks.
  static Result<TcpListener> listen(const Address& address, const ListenOptions& options = {});

  // The next connection, with TCP_NODELAY set. Parks until there is one. Connections that ended
  // while they waited are passed over. While the system lacks descriptors or memory, it tries again
  // after pauses, from 1 ms to 1 s: the connection waits. Errors: Errc::closed; the system's, of
  // which EPERM and EOPNOTSUPP, by a firewall that lets none in, come after eight tries. If `until`
  // ended the wait: Errc::timed_out, Errc::cancelled, or the system's of the last try, as
  // too_many_files_open.
  Result<TcpStream> accept(const Until& until = {});

  // Has the port that the system chose, if it was asked to.
  Result<Address> local_address() const noexcept;
  // Ends an accept() that waits with Errc::closed.
  void close() noexcept { socket_.close(); }
  // False for an empty or closed listener; may be stale when it returns.
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  // The socket inside, for select()'s cases and setsockopt.
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  explicit TcpListener(Socket socket) noexcept : socket_(std::move(socket)) {}

  Socket socket_;
};

}  // namespace weft::net
