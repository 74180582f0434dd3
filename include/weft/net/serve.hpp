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
  // The handler is called again when there are bytes to read or the stream has ended, unless a stop
  // or idle_timeout ends the connection. Until then, no fiber runs and no stack is used; a call
  // after a wait goes through ServerOptions::run, which may refuse the connection. The handler must
  // process all bytes that it read ahead, or keep unprocessed bytes in Connection::state().
  idle,
};

// Gives the handler of a Server access to a connection until the handler returns.
// Context: the handler; wait_readable() parks.
// Throws: std::bad_variant_access, and what state() throws.
// Order
//   [draining]  the drain stores draining_ (release) -> is_stopping() loads it (acquire): a handler
//               that the drain wakes sees that the server is stopping.
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

  // Returns the TCP or Unix stream as a ByteStream.
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
  // Returns the source in the PROXY header, or the address of the peer if there is no source.
  // Errors: Errc::closed; std::errc::address_family_not_supported for a Unix socket; system errors.
  [[nodiscard]] Result<Address> peer_address() const noexcept;
  // Returns the state of the connection; the first call creates it from `arguments`. The state is
  // kept during Next::idle and destroyed before the stream, usually in the connection's fiber.
  // Throws: std::bad_cast if the state is not a T; std::bad_alloc; what T's constructor throws.
  template <class T, class... Arguments>
  requires std::constructible_from<T, Arguments...>
  [[nodiscard]] T& state(Arguments&&... arguments) {
    if (state_ == nullptr) {
      state_ = std::make_unique<State<T>>(std::forward<Arguments>(arguments)...);
    }
    return dynamic_cast<State<T>&>(*state_).value;
  }
  // Takes the stream from the server; the server's drain then no longer affects the stream. If the
  // handler instead moves the stream out of the result of stream(), the server may still close it.
  // The handler may use the result, or pass it to a fiber and return.
  [[nodiscard]] AnyStream take() noexcept;
  // Returns whether the server is stopping. If so, the handler should complete its current work and
  // return.
  [[nodiscard]] bool is_stopping() const noexcept {
    return draining_.load(detail::acquire);  // [draining]
  }
  // Waits for the next request, as ByteStream::wait_readable() does. A drain ends the wait with
  // Errc::cancelled, unless the request has arrived.
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

// Refers to a TcpListener or a UnixListener.
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
  refuse,  // The server accepts the connection, and then refuses it (see on_refused).
};

struct ServerOptions {
  // The maximum number of open connections, including idle ones. With kUnlimited, only other limits
  // apply, such as the system's limit on descriptors and RuntimeOptions::max_fibers.
  std::size_t max_connections = kUnlimited;
  AtLimit at_limit = AtLimit::wait;
  // Receives refused connections, for a last response before the close. It must not wait or
  // throw, because the server may call it in the fiber that accepts connections. It may pass the
  // stream to another fiber. By default, refused connections are closed.
  std::function<void(ByteStream)> on_refused = {};
  // Starts the task that serves a new connection or resumes an idle one. See in_pool().
  // Several fibers may call the function at once; it may park. If the task is destroyed before it
  // has run, for example because `run` throws std::system_error or std::bad_alloc, the connection
  // is refused. Any other exception from `run` stops the server, and Server::serve() throws it. By
  // default, the task runs in a fiber with a stack of `stack_size` bytes (0: the default size).
  std::function<Result<void>(detail::Task&&)> run = {};
  std::size_t stack_size = 0;
  // Receives the exceptions that handlers throw. The connection's fiber calls it before the
  // connection is closed. It may park. By default, the server writes a line to stderr.
  std::function<void(std::exception_ptr)> on_exception = {};
  // How long a connection may be idle after Next::idle; the server then closes it within a few ms.
  std::chrono::nanoseconds idle_timeout = kNever;
  // How long connections may continue once the server stops; then the server closes them.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  // A stop request through this token, such as StopOnSignal::get_token(), has the effect of stop().
  std::stop_token stop = {};
  // Selects the connections that begin with a PROXY header. The connection's fiber reads the header
  // before the handler's first call. Without a header, or if the server stops before the header
  // arrives, the connection is refused. If `networks` is empty, the server reads no headers.
  ProxyProtocol proxy_protocol = {};
  // The server's label in the metrics and, if `run` is empty, the name of its connections' fibers.
  // Without a name, there are no metrics.
  std::string name = {};
};

// Counts events since the server's construction. The counts may be stale.
struct ServerStats {
  std::uint64_t accepted = 0;  // All accepted connections, even if refused afterwards.
  // Connections refused before their first handler call, and idle ones that `run` did not resume.
  std::uint64_t refused = 0;
  std::uint64_t open = 0;  // The number of open connections.
  // How often the system had no resources for the next connection, or a firewall refused it.
  std::uint64_t pauses = 0;
  std::uint64_t timed_out = 0;    // Idle connections that idle_timeout ended.
  std::uint64_t closed_late = 0;  // Connections still open at the end of the grace period.
};

// Makes a function for ServerOptions::run that runs handlers as tasks of `pool`. If the pool
// refuses or drops a task, the connection is refused. While a pool with OnFull::block is
// full, new connections wait in the system's queue. If an idle connection receives bytes meanwhile,
// a fiber of its own waits until the pool has room. The pool must outlive the server.
// Context: plain value.
[[nodiscard]] inline auto in_pool(FiberPool& pool) {
  return [&pool](detail::Task&& task) {
    return pool.submit([job = std::move(task)]() mutable { job.run(); });
  };
}

// Accepts a handler of any form that a Server takes. A handler receives a ByteStream&, TcpStream&,
// UnixStream& or Connection&, and may return a Next. Connection::is_stopping() reports that the
// server is stopping. Calls to the handler may be concurrent.
template <class H>
concept ConnectionHandler = std::invocable<H&, Connection&> || std::invocable<H&, ByteStream&> ||
    std::invocable<H&, TcpStream&> || std::invocable<H&, UnixStream&>;

// Accepts connections and calls a handler for each connection. If descriptors or memory run out, or
// a firewall refuses a connection, the server retries after pauses from 1 ms to 1 s. After a few
// pauses without a free descriptor, it uses a reserved one to refuse waiting clients. An exception
// that a handler throws goes to ServerOptions::on_exception, and the connection is closed.
// Context: fibers and plain threads; serve() and shutdown() park.
// Throws: std::bad_alloc.
class Server {
 public:
  using Handler = std::function<Next(Connection&)>;
  class Core;  // Private to the server.

  // Makes a server, which accepts no connection before serve() is called.
  // Throws: also std::invalid_argument if max_connections is 0; what moving the handler throws.
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
  // Requires that all calls to serve(), stop() and shutdown() have returned.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until stop() or shutdown() is called, ServerOptions::stop requests a stop, or a listener
  // ends. It then accepts the waiting clients, closes the listeners and ends idle connections.
  // Busy connections may continue for the grace period. It returns once every handler has returned.
  // Call it once. Each listener accepts in a fiber of its own.
  // Errors: the error that ended a listener; none if it was closed.
  // Throws: what spawn() and `run` (see ServerOptions) throw, after every handler has returned.
  Result<void> serve(std::span<const AnyListener> listeners);
  Result<void> serve(std::span<TcpListener> listeners) { return serve_each(listeners); }
  Result<void> serve(std::span<UnixListener> listeners) { return serve_each(listeners); }
  Result<void> serve(const AnyListener& listener) { return serve(std::span(&listener, 1)); }
  // Makes serve() end; serve() closes busy connections after ServerOptions::grace. Does not wait.
  // May be called repeatedly, even before serve().
  void stop() noexcept;
  // Makes serve() end as stop() does, and waits until the connections have ended. At the deadline,
  // which replaces ServerOptions::grace, closes the remaining connections, and waits for the
  // handlers. May be called repeatedly. A call from a handler does not wait beyond the deadline,
  // and does not close the connections of handlers that have called shutdown(). At the deadline,
  // serve() closes the connections that were accepted after the handler's call.
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

// Runs a Server until ServerOptions::stop requests a stop or a listener ends.
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
