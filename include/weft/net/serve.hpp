// Serving connections: the accept loop, its limits, and its end.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/task.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/net/unix_listener.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/pool.hpp>
#include <weft/until.hpp>

namespace weft::net {

// The fate of a connection when its handler has returned.
enum class Next : std::uint8_t {
  close,
  // The handler is called again when there is something to read, as the first time: by way of
  // ServeOptions::run, which may refuse the connection then. Until then it has no fiber that runs
  // and no stack. Bytes that were read ahead must have been dealt with.
  idle,
};

// One connection that a Server serves, as its handler sees it. Valid during the call. It is used by
// the handler; calls park, throw and synchronize where they say so.
// Order
//   [draining]  the drain stores draining_ (release) -> is_stopping loads it (acquire); the edge
//               that the drain leaves in each connection brings it to one that waits.
class Connection {
 public:
  // The streams of which a connection is one.
  using AnyStream = std::variant<TcpStream, UnixStream>;

  // The server makes it.
  Connection(AnyStream& stream, Mutex& mutex, const detail::Atomic<bool>& draining) noexcept
      : stream_(stream), mutex_(mutex), draining_(draining) {}

  // The stream, whatever carries it.
  [[nodiscard]] ByteStream& bytes() noexcept {
    return std::visit([](auto& stream) -> ByteStream& { return stream; }, stream_);
  }
  // The stream as TCP's, or a Unix socket's: throws std::bad_variant_access if a listener of the
  // other kind accepted it.
  [[nodiscard]] TcpStream& stream() { return std::get<TcpStream>(stream_); }
  // The Unix socket's stream; throws std::bad_variant_access if it is TCP's.
  [[nodiscard]] UnixStream& unix_stream() { return std::get<UnixStream>(stream_); }
  // Whether a UnixListener accepted it.
  [[nodiscard]] bool is_unix() const noexcept {
    return std::holds_alternative<UnixStream>(stream_);
  }
  // Takes the stream out of the server's hands: neither its drain nor the end of its grace touches
  // the stream any more. (A stream that is moved out of stream() may be closed by these meanwhile.)
  // The handler may go on with it, give it to a fiber, and return. May park for a moment.
  [[nodiscard]] AnyStream take() noexcept;
  // The server is about to end: finish what has been begun, and return.
  [[nodiscard]] bool is_stopping() const noexcept {
    return draining_.load(detail::acquire);  // [draining]
  }
  // As ByteStream::wait_readable(), between two requests: a drain ends it with Errc::cancelled,
  // unless the next request has come.
  [[nodiscard]] std::error_code wait_readable(const Until& until = {});

 private:
  AnyStream& stream_;
  Mutex& mutex_;  // Taken to look at the server's streams from outside.
  const detail::Atomic<bool>& draining_;
};

// A listener of either kind, by reference. A plain value.
class AnyListener {
 public:
  // The listener must outlive it.
  AnyListener(TcpListener& listener) noexcept : listener_(&listener) {}   // NOLINT: on purpose.
  AnyListener(UnixListener& listener) noexcept : listener_(&listener) {}  // NOLINT: on purpose.

  // The listener's own.
  [[nodiscard]] const Socket& socket() const noexcept {
    return std::visit([](auto* listener) -> const Socket& { return listener->socket(); },
                      listener_);
  }
  // Closes the listener: an accept() that waits gives Errc::closed. May be called at any time.
  void close() const noexcept {
    std::visit([](auto* listener) { listener->close(); }, listener_);
  }
  // The stream that an accepted connection becomes.
  [[nodiscard]] Connection::AnyStream to_stream(Socket&& socket) const noexcept {
    if (std::holds_alternative<TcpListener*>(listener_)) return TcpStream(std::move(socket));
    return UnixStream(std::move(socket));
  }

 private:
  std::variant<TcpListener*, UnixListener*> listener_;
};

// The fate of connections beyond ServeOptions::max_connections.
enum class AtLimit : std::uint8_t {
  wait,    // They wait in the system's queue (ListenOptions::backlog) until another one ends.
  refuse,  // They are accepted and refused.
};

struct ServeOptions {
  // Connections served at once, idle ones included; 0: as many as there are descriptors.
  std::size_t max_connections = 0;
  AtLimit at_limit = AtLimit::wait;
  // Gets connections that are not served: an answer to write, say, before it is closed. It is
  // called by the fiber that accepts, or by the one that gave the connection up, and must neither
  // wait nor throw; it may move the stream into a fiber. Where descriptors lack, the next one is
  // handed over when that fiber has closed its own. Empty: they are closed.
  std::function<void(ByteStream)> on_refused = {};
  // Starts what serves a connection, first and after each Next::idle; see in_pool(). It is called
  // by several fibers at once and may park. A task that is destroyed without having been run, also
  // because this throws std::system_error or std::bad_alloc, has the connection refused. Any other
  // exception drains the server, and Server::run() finally throws it.
  // Empty: a fiber for each connection, of `stack_size` bytes (0: the default).
  std::function<std::error_code(detail::Task&&)> run = {};
  std::size_t stack_size = 0;
  // Receives what a handler has thrown, before its connection is closed. It is called in the fiber
  // of that connection, and may park. Empty: the server writes one line to stderr.
  std::function<void(std::exception_ptr)> on_exception = {};
  // How long a connection whose handler returned Next::idle may be so; then it is closed, at most a
  // quarter of that time later.
  std::chrono::nanoseconds idle_timeout = kNever;
  // How long connections may go on once the server stops; then they are closed, and connections
  // that still wait for a place are refused.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  // A request stops the server, as Server::stop() does: StopOnSignal::get_token(), say.
  std::stop_token stop = {};
};

// Sums since the beginning. May be stale when they are returned.
struct ServeStats {
  std::uint64_t accepted = 0;     // Connections accepted, refused ones included.
  std::uint64_t refused = 0;      // Accepted ones given up instead of calling the handler.
  std::uint64_t open = 0;         // Connections there are now.
  std::uint64_t pauses = 0;       // Times the system had nothing for the next one, or let none in.
  std::uint64_t timed_out = 0;    // Idle ones that idle_timeout ended.
  std::uint64_t closed_late = 0;  // Connections still there at the end of the grace.
};

// For ServeOptions::run: connections are served by the pool's fibers, one for as long as its
// handler runs, and what the pool refuses (OnFull::reject) is refused. With OnFull::block new
// connections wait in the system's queue, and each idle one that has something to read in a fiber.
// The pool outlives the server. From anywhere; neither parks, throws nor synchronizes.
[[nodiscard]] inline auto in_pool(FiberPool& pool) {
  return [&pool](detail::Task&& task) {
    return pool.submit([job = std::move(task)]() mutable { job.run(); });
  };
}

// A handler of any form that a Server takes: it gets the stream (a ByteStream&, TcpStream& or
// UnixStream&), or a Connection& if it has to see the server's end, and may return a Next then.
template <class H>
concept ConnectionHandler = std::invocable<H&, Connection&> || std::invocable<H&, ByteStream&> ||
    std::invocable<H&, TcpStream&> || std::invocable<H&, UnixStream&>;

// Accepts connections and has a handler called for each; for several at once. Lack of descriptors
// and memory, or a firewall that lets none in, is waited out with pauses that grow from 1 ms to
// 1 s. While there are no descriptors, one that is held in reserve is used to refuse waiting
// clients. An exception that leaves a handler goes to ServeOptions::on_exception, and its
// connection is closed; the server goes on. Call it from fibers and plain threads. Calls park,
// throw and synchronize where they say so.
class Server {
 public:
  using Handler = std::function<Next(Connection&)>;
  class Core;  // Private to the server.

  // Serves nothing yet; serve() does. Throws std::bad_alloc.
  explicit Server(Handler handler, ServeOptions options = {});
  // Takes a handler of any form, also one that can only be moved.
  template <ConnectionHandler H>
  requires(!std::same_as<H, Handler>) explicit Server(H handler, ServeOptions options = {})
      : Server(to_handler(std::move(handler)), std::move(options)) {}
  // serve() must have returned.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until stop(), shutdown(), a request of ServeOptions::stop, or the close of a listener.
  // It then accepts what has connected already, closes the listeners, lets idle connections end,
  // and gives the others the grace, in which waiting ones get a place as others end. Finally it
  // closes what is left, and returns when every handler has. Call it once. Several listeners that
  // share a port (ListenOptions::reuse_port) accept independently of each other, each in a fiber.
  // From fibers and plain threads; parks. Errors: what ended a listener except a close. Throws as
  // spawn(), and what ServeOptions::run says; every handler has returned then, too.
  std::error_code serve(std::span<const AnyListener> listeners);
  std::error_code serve(std::span<TcpListener> listeners) { return serve_each(listeners); }
  std::error_code serve(std::span<UnixListener> listeners) { return serve_each(listeners); }
  std::error_code serve(const AnyListener& listener) { return serve(std::span(&listener, 1)); }
  // Begins the end of serve(), which has ServeOptions::grace for it, and returns at once. Call it
  // from any thread, any number of times, also before serve().
  void stop() noexcept;
  // Begins the end of serve(), as stop() does, and parks until its connections have ended. At the
  // deadline, which holds instead of ServeOptions::grace, it closes what is left, and waits for
  // their handlers to return. True if the deadline was not needed. Fibers and plain threads may
  // call it, more than once. Called by a handler it does not wait for that handler's connection,
  // nor for others whose handlers are in shutdown().
  bool shutdown(Deadline grace);
  // Whether its end has begun. Never parks.
  [[nodiscard]] bool is_stopping() const noexcept;
  // Each number may be stale when they return. From anywhere; never parks.
  [[nodiscard]] ServeStats stats() const noexcept;

 private:
  template <class H>
  [[nodiscard]] static Handler to_handler(H handler);
  template <class L>
  std::error_code serve_each(std::span<L> listeners) {
    return serve(std::vector<AnyListener>(listeners.begin(), listeners.end()));
  }

  std::unique_ptr<Core> core_;
};

template <class H>
Server::Handler Server::to_handler(H handler) {
  if constexpr (!std::copy_constructible<H>) {
    return to_handler([shared = std::make_shared<H>(std::move(handler))]<class S>(
        S & stream) requires std::invocable<H&, S&> { return (*shared)(stream); });
  } else if constexpr (std::is_invocable_r_v<Next, H&, Connection&>) {
    return Handler(std::move(handler));
  } else {
    return Handler([handler = std::move(handler)](Connection& connection) mutable {
      if constexpr (std::invocable<H&, Connection&>) {
        handler(connection);
      } else if constexpr (std::invocable<H&, ByteStream&>) {
        handler(connection.bytes());
      } else if constexpr (std::invocable<H&, TcpStream&>) {
        handler(connection.stream());
      } else {
        handler(connection.unix_stream());
      }
      return Next::close;
    });
  }
}

template <class T>
concept Listener = std::same_as<T, TcpListener> || std::same_as<T, UnixListener>;

// A Server in one call, which ends and returns as Server::serve(): with a request of
// ServeOptions::stop, or listener.close().
template <Listener L, ConnectionHandler H>
std::error_code serve(std::span<L> listeners, ServeOptions options, H handler) {
  return Server(std::move(handler), std::move(options)).serve(listeners);
}
template <Listener L, ConnectionHandler H>
std::error_code serve(L& listener, ServeOptions options, H handler) {
  return serve(std::span(&listener, 1), std::move(options), std::move(handler));
}
template <Listener L, ConnectionHandler H>
std::error_code serve(L& listener, H handler) {
  return serve(listener, ServeOptions{}, std::move(handler));
}

// `count` listeners that share one port: the system spreads connections over them. Errors: as
// TcpListener::listen(). Never parks. Call it from fibers and plain threads. Throws std::bad_alloc;
// synchronizes with nothing.
Result<std::vector<TcpListener>> listen_shared(const Address& address, std::size_t count,
                                               ListenOptions options = {});

}  // namespace weft::net
