// Accepts connections from processes on the same machine.
#pragma once

#include <utility>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/net/unix_address.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/until.hpp>

namespace weft::net {

struct UnixListenOptions {
  // The largest number of connections that wait for accept(); the system caps it
  // (net.core.somaxconn).
  int backlog = 4096;
  // Whether to remove an existing socket file whose server has ended without removing it. If
  // several servers replace such a file at the same time, all may listen, but clients reach only
  // the last one. To prevent this, hold a lock (flock() on a lock file) while listen() runs.
  bool replace_stale = true;
};

// Listens on a Unix socket. A listener is move-only. The destructor closes the socket, but leaves
// the file, because the next server may already use it. The listener must not outlive its runtime.
// One caller accepts at a time; close() may be called at any time.
// Context: fibers and plain threads; accept() parks.
// Errors: Errc::closed; system errors.
// Throws: std::bad_alloc.
class UnixListener {
 public:
  UnixListener() noexcept = default;

  // Listens at `address`.
  // Errors: also Errc::no_runtime on a plain thread without a runtime; address_in_use if a server
  // already listens, the file is not a socket, or the file exists and replace_stale is false.
  static Result<UnixListener> listen(const UnixAddress& address,
                                     const UnixListenOptions& options = {});

  // Accepts a connection as TcpListener::accept() does.
  Result<UnixStream> accept(const Until& until = Until::ambient());

  // Returns the address of the listener.
  Result<UnixAddress> local_address() const noexcept;
  // Ends a waiting accept() with Errc::closed.
  void close() noexcept { socket_.close(); }
  // Returns false for an empty or closed listener; may be stale.
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  // Returns the socket, for select cases and setsockopt.
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  explicit UnixListener(Socket socket) noexcept : socket_(std::move(socket)) {}

  Socket socket_;
};

}  // namespace weft::net
