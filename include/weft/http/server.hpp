// An HTTP/1.1 server.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/detail/shared_function.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/http/compression.hpp>
#include <weft/http/layer.hpp>
#include <weft/http/limits.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>
#include <weft/http/trusted_proxies.hpp>
#include <weft/net/address.hpp>
#include <weft/net/proxy_protocol.hpp>
#include <weft/net/result.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool_options.hpp>
#include <weft/unlimited.hpp>

namespace weft::http {

// Answers requests. A server calls a Handler in a fiber for each request, in the request's context
// (context.hpp). If the handler throws, the server answers with 500, or closes the connection if
// the response has begun. If the callable is move-only, copies of a Handler share it.
using Handler = weft::detail::SharedFunction<void(Request&, Response&)>;

// Describes an answered request, for an access log.
struct Access {
  // If the request was refused, holds only what the server had parsed, possibly nothing.
  const Request& request;
  int status;                         // 0 if the connection broke before the end of the response.
  std::uint64_t bytes;                // The number of body bytes sent.
  std::chrono::nanoseconds duration;  // The time from the head's end until both bodies have ended.
  // Why the connection broke, or why the request was refused or not read to its end: an http::Errc,
  // a weft::Errc such as timed_out, or a system error. Empty: no error.
  std::error_code error = {};
};

struct ServerOptions {
  Limits limits = {};
  // The number of slots: at most this many handlers run at once. Idle connections need no slot.
  std::size_t max_running = kUnlimited;
  // The largest number of requests that wait for a slot. Further requests, and requests that are
  // still waiting when Limits::request has passed, are answered with 503 and Retry-After.
  std::size_t max_queued = 0;
  // The value of Retry-After in these 503 responses.
  std::chrono::seconds retry_after = std::chrono::seconds(1);
  // Replaces max_running: handlers run in this pool, which may have other tasks and must outlive
  // the server. If the pool refuses a request, the response is 503. A handler's stack size is
  // PoolOptions::stack_size in a pool, and otherwise RuntimeOptions::stack_size.
  FiberPool* pool = nullptr;
  // The largest number of served connections. Each listener accepts one more connection, which
  // waits until another one is closed; further connections stay in the listener's backlog.
  std::size_t max_connections = kUnlimited;
  // The layer below HTTP, such as tls::server_layer(context). The connection's fiber performs the
  // handshake when the client's first bytes arrive, within Limits::head. Empty: no layer.
  ServerLayer secure = {};
  // Specifies which peers send a PROXY header before TLS begins; see Request::peer_address().
  net::ProxyProtocol proxy_protocol = {};
  // The proxies whose forwarding headers are trusted; see Request::client_address().
  TrustedProxies trusted_proxies = {};
  // Compresses responses for clients that request compression. Empty: no compression.
  std::optional<Compression> compression = {};
  // Called after each response, in the connection's fiber, even if the head was refused. Empty: not
  // called.
  std::function<void(const Access&)> on_access = {};
  // Receives what handlers, upgrades, on_access and the server throw. Empty: it goes to stderr.
  std::function<void(std::exception_ptr)> on_exception = {};
  // How long requests may continue after stop() before their connections are closed.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  // A stop request through this token, such as StopOnSignal::get_token(), has the same effect as
  // Server::stop().
  std::stop_token stop = {};
  // The server's label in the metrics, and the name of its connections' fibers. Empty: the label is
  // "http", and the fibers have no name.
  std::string name = {};
};

// Holds the figures that stats() reads. A figure is exact unless it changes during that call.
struct ServerStats {
  std::uint64_t accepted = 0;     // Connections accepted so far.
  std::uint64_t connections = 0;  // Open connections.
  std::uint64_t requests = 0;     // Valid requests so far.
  // Requests answered with 503 for lack of a slot, and TLS handshakes refused for overload.
  std::uint64_t refused = 0;
  std::uint64_t malformed = 0;      // Refused heads, bad PROXY headers, other failed handshakes.
  std::uint64_t accept_pauses = 0;  // How often accept() failed and was retried later.
  // Connections closed for lack of descriptors, fibers or memory, after a 503 if not `secure`.
  std::uint64_t turned_away = 0;
};

// States what a request is waiting for.
enum class RequestState : std::uint8_t {
  reading_head,  // The client has not sent all of the head.
  handling,      // The handler runs, or the server waits, but not for the client.
  reading_body,  // The server is waiting for bytes of the body.
  writing,       // The server is waiting for the client to read the response.
};
// Returns the name of the state, such as "reading body".
// Context: plain value.
[[nodiscard]] const char* to_string(RequestState state) noexcept;

// Describes a request that is being read or answered.
struct RequestInProgress {
  net::Address peer;             // The address of the other end, which may be a proxy.
  std::uint64_t fiber = 0;       // this_fiber::id() of the fiber that reads or handles the request.
  std::string method;            // At most 16 characters; empty until the head is complete.
  std::string target;            // At most 256 characters; empty until the head is complete.
  std::chrono::nanoseconds age;  // The time since the server began to read the request.
  // The received bytes, including the head, and possibly bytes of the next request.
  std::uint64_t received = 0;
  std::uint64_t sent = 0;  // The bytes sent, including the head; updated after each write.
  std::string route;       // Such as "GET /users/{id}"; "none" until a router selects a route.
  RequestState state = RequestState::handling;
  // How long the server has been waiting for the client; 0 if it is not waiting.
  std::chrono::nanoseconds waiting{};
};

class ServerCore;

// Answers requests on the connections of its listeners. A connection without a request has no
// running fiber and no stack. The connection's next request may run in another fiber.
// Context: fibers and plain threads of a runtime; serve(), shutdown() and the destructor park.
// Throws: std::bad_alloc; serve() also throws whatever go() throws.
class Server {
 public:
  // Makes a server that answers with `handler`.
  // Throws: exceptions of FiberPool's constructor; std::invalid_argument, which names the option.
  explicit Server(Handler handler, ServerOptions options = {});
  // Exists only for its clear error message.
  template <class H>
  requires(!std::convertible_to<H, Handler>) explicit Server(H, ServerOptions options = {})
      : Server(Handler(), std::move(options)) {
    static_assert(weft::detail::kFits<H>,
                  "weft::http::Server: the handler must take a Request& and a Response&");
  }
  // Calls shutdown(Deadline::past()).
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Accepts connections, as net::Server does, until stop() or shutdown() is called, a stop is
  // requested through ServerOptions::stop, or a listener is closed. After stop() or a stop request,
  // serve() shuts down as shutdown() does, with ServerOptions::grace. serve() retries when
  // descriptors or memory run out. Several calls may run at once, in fibers of one runtime;
  // listeners that share a port (net::listen_shared) accept independently.
  // Errors: if a listener fails, its error; a stop, a shutdown or a closed listener is no error. A
  // UnixListener's connections have no address: without a PROXY header, peer_address() fails.
  net::Result<void> serve(std::span<const net::AnyListener> listeners);
  net::Result<void> serve(std::span<net::TcpListener> listeners);
  net::Result<void> serve(const net::AnyListener& listener) {
    return serve(std::span(&listener, 1));
  }

  // Makes serve() shut down with ServerOptions::grace, and returns at once. It may be called
  // repeatedly, even before serve().
  void stop() noexcept;

  // Ends the server. Closes idle connections at once, and others after their current response. A
  // client that has not sent a request yet has half a second to send its first one. Parks until all
  // connections are closed. At the deadline, cancels the contexts of the remaining requests, closes
  // their connections and waits for the handlers. Another shutdown() with an earlier deadline, or
  // the end of ServerOptions::grace after stop(), ends this wait early; a stop request for the
  // caller does not. A shutdown() called in a handler, a `talk` or on_access does not wait for
  // connections on which shutdown() was called. After the deadline, it waits for no handler.
  // Returns: true if all connections for which shutdown() waits have ended before the deadline.
  bool shutdown(Deadline grace);

  // Returns statistics, which may be stale.
  [[nodiscard]] ServerStats stats() const noexcept;

  // Returns up to min(most, 256) unfinished requests, the oldest first. The call takes time in
  // proportion to the number of connections.
  [[nodiscard]] std::vector<RequestInProgress> longest_requests(std::size_t most = 20) const;

  // Does the same as longest_requests(), but orders the requests by the time for which the server
  // has waited for their clients. Omits requests that are not waiting for their client.
  [[nodiscard]] std::vector<RequestInProgress> slow_clients(std::size_t most = 20) const;

 private:
  const std::unique_ptr<ServerCore> core_;
};

}  // namespace weft::http
