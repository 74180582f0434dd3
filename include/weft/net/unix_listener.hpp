// Waiting for connections within this machine.
#pragma once

#include <utility>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/net/unix_address.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/until.hpp>

namespace weft::net {

struct UnixListenOptions {
  // Connections that may wait to be accepted; the system caps it (net.core.somaxconn).
  int backlog = 4096;
  // A socket file that is there already, but on which no server listens, is removed first: its
  // server has ended without removing it. If servers start at the same moment on a stale one, each
  // may be told that it listens, and only the last one is found by the name. Where that can happen,
  // a lock (flock on another file) must come before.
  bool replace_stale = true;
};

// A listening Unix socket. Move-only; closes in the destructor, but leaves its file: it might be
// the next server's by then. It must not outlive its runtime.
// One caller accepts at a time; close() may come from any caller while the object exists. Call it
// from fibers and plain threads. Calls park, throw and synchronize where they say so.
class UnixListener {
 public:
  UnixListener() noexcept = default;

  // Errors: Errc::no_runtime from a plain thread without one; address_in_use: a server listens
  // there, or what has that name is no socket; or the system's. Never parks.
  static Result<UnixListener> listen(const UnixAddress& address,
                                     const UnixListenOptions& options = {});

  // The next connection. All that TcpListener::accept() says holds.
  Result<UnixStream> accept(const Until& until = {});

  // Where it listens. Never parks. Errors: Errc::closed; the system's.
  Result<UnixAddress> local_address() const noexcept;
  // Ends an accept() that waits with Errc::closed.
  void close() noexcept { socket_.close(); }
  // False for an empty or closed listener; may be stale when it returns.
  [[nodiscard]] bool is_open_hint() const noexcept { return socket_.is_open_hint(); }
  // The socket inside, for select()'s cases and setsockopt.
  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  explicit UnixListener(Socket socket) noexcept : socket_(std::move(socket)) {}

  Socket socket_;
};

}  // namespace weft::net
