// Accepts connections, limits their number, and ends them.
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
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/task.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/net/proxy_protocol.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/net/unix_listener.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/pool.hpp>
#include <weft/unlimited.hpp>
#include <weft/until.hpp>

namespace weft::net {

// Selects what happens to a connection when its handler has returned.
enum class Next : std::uint8_t {
  close,
  // The handler is called again when there are bytes to read. ServerOptions::run starts that call
  // and may refuse the connection. Until then the connection has no running fiber and no stack. The
  // handler must have processed all bytes that it read ahead, or keep the rest in
  // Connection::state().
  idle,
};

// Gives the handler of a Server access to a connection, during the handler's call.
// Context: the handler; wait_readable() parks.
// Throws: std::bad_variant_access, and what state() throws.
// Order
//   [draining]  the drain stores draining_ (release) -> is_stopping loads it (acquire); the drain
//               also leaves an edge in each connection, which wakes a waiting call.
class Connection {
 public:
  // The stream of a connection.
  using AnyStream = std::variant<TcpStream, UnixStream>;

  // Holds a connection's state, of any type.
  struct AnyState {
    virtual ~AnyState() = default;
  };

  // Makes a Connection that refers to objects of the server.
  Connection(AnyStream& stream, detail::SpinLock& lock, const detail::Atomic<bool>& draining,
             std::unique_ptr<AnyState>& state, const ProxyHeader* proxied) noexcept
      : stream_(stream), lock_(lock), draining_(draining), state_(state), proxied_(proxied) {}

  // Returns the stream, of either kind.
  [[nodiscard]] ByteStream& bytes() noexcept {
    return std::visit([](auto& stream) -> ByteStream& { return stream; }, stream_);
  }
  // Returns the TCP stream.
  // Throws: std::bad_variant_access if a UnixListener accepted the connection.
  [[nodiscard]] TcpStream& stream() { return std::get<TcpStream>(stream_); }
  // Returns the Unix socket's stream.
  // Throws: std::bad_variant_access if a TcpListener accepted the connection.
  [[nodiscard]] UnixStream& unix_stream() { return std::get<UnixStream>(stream_); }
  // Returns whether a UnixListener accepted the connection.
  [[nodiscard]] bool is_unix() const noexcept {
    return std::holds_alternative<UnixStream>(stream_);
  }
  // Returns the PROXY header (ServerOptions::proxy_protocol), or null if the connection has none.
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept { return proxied_; }
  // Returns the source in the PROXY header; without a source, the address of the peer.
  // Errors: std::errc::address_family_not_supported for a Unix socket; errors of the system.
  [[nodiscard]] Result<Address> peer_address() const noexcept;
  // Returns the state of the connection; the first call creates it from `arguments`. The state is
  // kept during Next::idle and destroyed before the stream, in a fiber of the connection.
  // Throws: std::bad_cast for a state of another type; std::bad_alloc; what T's constructor throws.
  template <class T, class... Arguments>
  requires std::constructible_from<T, Arguments...>
  [[nodiscard]] T& state(Arguments&&... arguments) {
    if (state_ == nullptr) {
      state_ = std::make_unique<State<T>>(std::forward<Arguments>(arguments)...);
    }
    return dynamic_cast<State<T>&>(*state_).value;
  }
  // Takes the stream from the server; the drain and the grace of the server then do not affect the
  // stream. In contrast, the server may close a stream that is moved out of stream(). The handler
  // may use the result, or pass it to a fiber and return.
  [[nodiscard]] AnyStream take() noexcept;
  // Returns whether the server is stopping. If so, the handler should complete its current work and
  // return.
  [[nodiscard]] bool is_stopping() const noexcept {
    return draining_.load(detail::acquire);  // [draining]
  }
  // Waits as ByteStream::wait_readable() does, between two requests. A drain ends the wait with
  // Errc::cancelled, unless the next request has arrived.
  [[nodiscard]] Result<void> wait_readable(const Until& until = Until::ambient());

 private:
  template <class T>
  struct State final : AnyState {
    template <class... Arguments>
    explicit State(Arguments&&... arguments) : value(std::forward<Arguments>(arguments)...) {}
    T value;
  };

  AnyStream& stream_;
  detail::SpinLock& lock_;  // Guards `stream_`, which the server's drain also uses.
  const detail::Atomic<bool>& draining_;
  std::unique_ptr<AnyState>& state_;
  const ProxyHeader* const proxied_;
};

// Refers to a listener of either kind.
// Context: plain value.
class AnyListener {
 public:
  // Refers to `listener`, which must outlive the AnyListener.
  AnyListener(TcpListener& listener) noexcept : listener_(&listener) {}   // NOLINT: on purpose.
  AnyListener(UnixListener& listener) noexcept : listener_(&listener) {}  // NOLINT: on purpose.

  // Returns the listener's socket.
  [[nodiscard]] const Socket& socket() const noexcept {
    return std::visit([](auto* listener) -> const Socket& { return listener->socket(); },
                      listener_);
  }
  // Closes the listener; a waiting accept() returns Errc::closed. May be called at any time.
  void close() const noexcept {
    std::visit([](auto* listener) { listener->close(); }, listener_);
  }
  // Makes the stream of an accepted connection.
  [[nodiscard]] Connection::AnyStream to_stream(Socket&& socket) const noexcept {
    if (std::holds_alternative<TcpListener*>(listener_)) return TcpStream(std::move(socket));
    return UnixStream(std::move(socket));
  }

 private:
  std::variant<TcpListener*, UnixListener*> listener_;
};

// Selects what happens to connections beyond ServerOptions::max_connections.
enum class AtLimit : std::uint8_t {
  wait,    // Clients wait in the system's queue (ListenOptions::backlog) until a connection ends.
  refuse,  // The server accepts further clients, and refuses them.
};

struct ServerOptions {
  // The largest number of connections at once, including idle connections. kUnlimited: only
  // descriptors limit the number.
  std::size_t max_connections = kUnlimited;
  AtLimit at_limit = AtLimit::wait;
  // Receives each refused connection, for a last answer before it is closed. The accepting fiber,
  // or the fiber that refused the connection, calls this function, which must not wait or throw.
  // The function may move the stream into a fiber. Empty: the server closes refused connections.
  std::function<void(ByteStream)> on_refused = {};
  // Starts the task that serves a connection, first and after each Next::idle; see in_pool().
  // Several fibers may call the function at once; it may park. If the task is destroyed before it
  // has run, for example because `run` throws std::system_error or std::bad_alloc, the connection
  // is refused. Any other exception drains the server, and Server::serve() throws the exception.
  // Empty: the task runs in a fiber with a stack of `stack_size` bytes (0: the default).
  std::function<Result<void>(detail::Task&&)> run = {};
  std::size_t stack_size = 0;
  // Receives an exception of a handler, in the connection's fiber, before the connection is closed.
  // The function may park. Empty: the server writes a line to stderr.
  std::function<void(std::exception_ptr)> on_exception = {};
  // How long a connection may be idle after Next::idle. The server closes it a few ms after that
  // time.
  std::chrono::nanoseconds idle_timeout = kNever;
  // How long connections may continue once the server stops; then the server closes them.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  // A stop request of this token, such as StopOnSignal::get_token(), has the effect of stop().
  std::stop_token stop = {};
  // Selects connections with a PROXY header. The connection's fiber reads the header before the
  // handler's first call. Without a header, or if the server stops before the header arrives, the
  // connection is refused. If `networks` is empty, no connection has a header.
  ProxyProtocol proxy_protocol = {};
  // The server's label in the metrics and, without `run`, the name of the fibers of its
  // connections. Empty: no metrics, no name.
  std::string name = {};
};

// Counts events since the server's construction. The counts may be stale.
struct ServerStats {
  std::uint64_t accepted = 0;  // Accepted connections, including refused connections.
  // Connections refused before the handler's first call, or by `run` after Next::idle.
  std::uint64_t refused = 0;
  std::uint64_t open = 0;  // The number of open connections.
  // How often the system had no resources for the next connection, or a firewall refused it.
  std::uint64_t pauses = 0;
  std::uint64_t timed_out = 0;    // Idle connections that idle_timeout ended.
  std::uint64_t closed_late = 0;  // Connections that were still open at the end of the grace.
};

// Makes a ServerOptions::run that runs handlers as tasks of `pool`. If the pool refuses a task
// (OnFull::reject), the connection is refused. With OnFull::block, new connections wait in the
// system's queue, and each readable idle connection waits in a fiber. The pool must outlive the
// server.
// Context: plain value.
[[nodiscard]] inline auto in_pool(FiberPool& pool) {
  return [&pool](detail::Task&& task) {
    return pool.submit([job = std::move(task)]() mutable { job.run(); });
  };
}

// Accepts a handler of any form that a Server takes. A handler receives a ByteStream&, TcpStream&,
// UnixStream& or Connection&, and may return a Next. Connection::is_stopping() reports the server's
// end. Several calls may be concurrent.
template <class H>
concept ConnectionHandler = std::invocable<H&, Connection&> || std::invocable<H&, ByteStream&> ||
    std::invocable<H&, TcpStream&> || std::invocable<H&, UnixStream&>;

// Accepts connections and calls a handler for each connection. If descriptors or memory run out, or
// a firewall refuses a connection, the server retries after pauses from 1 ms to 1 s. If descriptors
// run out, it uses a reserved descriptor to refuse waiting clients. An exception of a handler goes
// to ServerOptions::on_exception and closes the connection.
// Context: fibers and plain threads; serve() and shutdown() park.
// Throws: std::bad_alloc.
class Server {
 public:
  using Handler = std::function<Next(Connection&)>;
  class Core;  // Private to the server.

  // Makes a server, which serves nothing before serve().
  // Throws: also std::invalid_argument if max_connections is 0.
  explicit Server(Handler handler, ServerOptions options = {});
  // Makes a server with a handler of any form, even a move-only handler.
  template <ConnectionHandler H>
  requires(!std::same_as<H, Handler>) explicit Server(H handler, ServerOptions options = {})
      : Server(to_handler(std::move(handler)), std::move(options)) {}
  // Exists only for its error message.
  template <class H>
  requires(!ConnectionHandler<H> &&
           !std::convertible_to<H, Handler>) explicit Server(H, ServerOptions options = {})
      : Server(Handler(), std::move(options)) {
    static_assert(detail::kFits<H>,
                  "weft::net::Server: the handler must take a Connection&, ByteStream&, TcpStream& "
                  "or UnixStream&");
  }
  // Requires that all calls of serve(), stop() and shutdown() have returned.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until stop(), shutdown(), a request of ServerOptions::stop, or the close of a listener.
  // The call then accepts connected clients, closes the listeners and ends idle connections. Other
  // connections may continue for the grace. serve() returns after every handler. Call it once.
  // Listeners that share a port (ListenOptions::reuse_port) accept independently, each in a fiber.
  // Errors: the error that ended a listener, except a close.
  // Throws: what spawn() and ServerOptions::run throw, after every handler has returned.
  Result<void> serve(std::span<const AnyListener> listeners);
  Result<void> serve(std::span<TcpListener> listeners) { return serve_each(listeners); }
  Result<void> serve(std::span<UnixListener> listeners) { return serve_each(listeners); }
  Result<void> serve(const AnyListener& listener) { return serve(std::span(&listener, 1)); }
  // Makes serve() end, within ServerOptions::grace, and returns at once. May be called repeatedly,
  // even before serve().
  void stop() noexcept;
  // Makes serve() end as stop() does, and waits until the connections have ended. At the deadline,
  // which replaces ServerOptions::grace, closes the remaining connections, and waits for the
  // handlers. May be called repeatedly. In a handler, returns at the deadline, and does not close
  // connections whose handlers have called shutdown(). Such a call does not wait for clients that
  // are accepted after its wait; serve() closes their connections at the deadline.
  // Returns: true if no connection was left to close at the deadline.
  bool shutdown(Deadline grace);
  // Returns whether the server is stopping.
  [[nodiscard]] bool is_stopping() const noexcept;
  // Returns statistics, which may be stale.
  [[nodiscard]] ServerStats stats() const noexcept;

 private:
  template <class H>
  [[nodiscard]] static Handler to_handler(H handler);
  template <class L>
  Result<void> serve_each(std::span<L> listeners) {
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
      const auto call = [&handler]<class S>(S& shown) -> Next {
        if constexpr (std::is_invocable_r_v<Next, H&, S&>) {
          return handler(shown);
        } else {
          handler(shown);
          return Next::close;
        }
      };
      if constexpr (std::invocable<H&, Connection&>) {
        return call(connection);
      } else if constexpr (std::invocable<H&, ByteStream&>) {
        return call(connection.bytes());
      } else if constexpr (std::invocable<H&, TcpStream&>) {
        return call(connection.stream());
      } else {
        return call(connection.unix_stream());
      }
    });
  }
}

template <class T>
concept Listener = std::same_as<T, TcpListener> || std::same_as<T, UnixListener>;

// Runs a Server until ServerOptions::stop requests a stop or a listener is closed.
// Context, Errors, Throws: the same as for Server::serve() and the constructor of Server.
template <Listener L, ConnectionHandler H>
Result<void> serve(std::span<L> listeners, ServerOptions options, H handler) {
  return Server(std::move(handler), std::move(options)).serve(listeners);
}
template <Listener L, ConnectionHandler H>
Result<void> serve(L& listener, ServerOptions options, H handler) {
  return serve(std::span(&listener, 1), std::move(options), std::move(handler));
}
template <Listener L, ConnectionHandler H>
Result<void> serve(L& listener, H handler) {
  return serve(listener, ServerOptions{}, std::move(handler));
}

// The overloads below exist only for their error messages.
template <Listener L, class H>
requires(!ConnectionHandler<H>) Result<void> serve(std::span<L>, ServerOptions, H) {
  static_assert(detail::kFits<H>,
                "weft::net::serve: the handler must take a Connection&, ByteStream&, TcpStream& or "
                "UnixStream&");
  return {};
}
template <Listener L, class H>
requires(!ConnectionHandler<H>) Result<void> serve(L&, ServerOptions, H) {
  static_assert(detail::kFits<H>,
                "weft::net::serve: the handler must take a Connection&, ByteStream&, TcpStream& or "
                "UnixStream&");
  return {};
}
template <Listener L, class H>
requires(!ConnectionHandler<H>) Result<void> serve(L&, H) {
  static_assert(detail::kFits<H>,
                "weft::net::serve: the handler must take a Connection&, ByteStream&, TcpStream& or "
                "UnixStream&");
  return {};
}

// Returns `count` listeners that share a port; the system spreads connections over them.
// Context: fibers and plain threads; does not park.
// Errors: the same as for TcpListener::listen().
// Throws: std::bad_alloc.
Result<std::vector<TcpListener>> listen_shared(const Address& address, std::size_t count,
                                               ListenOptions options = {});

}  // namespace weft::net
