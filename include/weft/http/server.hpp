// An HTTP/1.1 server.
#pragma once

#include <chrono>
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
#include <weft/http/compression.hpp>
#include <weft/http/layer.hpp>
#include <weft/http/limits.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>
#include <weft/net/address.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool_options.hpp>

namespace weft::http {

// Called in a fiber for each request. An exception that it throws is answered with 500, or if the
// answer has begun, with the end of the connection.
using Handler = std::function<void(Request&, Response&)>;

// The facts that a log of accesses receives when a request has been answered.
struct Access {
  const Request& request;             // Of a refused one, what was understood: maybe nothing.
  int status;                         // 0: the connection broke first.
  std::uint64_t bytes;                // Of the body that was sent.
  std::chrono::nanoseconds duration;  // The time from the head's end to the answer's.
  // Why the request was refused or could not be read to its end (an http::Errc, or
  // weft::Errc::timed_out), or why the connection broke; empty if all went well.
  std::error_code error = {};
};

struct ServerOptions {
  Limits limits = {};
  // The most handlers that run at once. The cap belongs to requests: a connection on which nothing
  // is asked takes no slot. kUnlimited: each runs as soon as its head is there.
  std::size_t max_running = kUnlimited;
  // Requests that may wait for a slot. One more is answered with 503 and Retry-After, and so is one
  // that has waited until Limits::request was over. The connection stays open, unless more than 64
  // KiB of a body are left on it.
  std::size_t max_queued = 0;
  // Seconds, in that answer.
  std::chrono::seconds retry_after = std::chrono::seconds(1);
  // Instead of max_running: handlers run in this pool, which may have other work, too, and which
  // must outlive the server. When it refuses one, the answer is 503.
  FiberPool* pool = nullptr;
  // The most connections that are open at once; more wait in the listener's backlog, except one,
  // which has been accepted and waits for its place. A server that stops takes all of them.
  std::size_t max_connections = kUnlimited;
  // The layer that the connections speak below HTTP: tls::server_layer(context). Its handshake is
  // made in the connection's fiber, when the client's first bytes come, in Limits::head. Empty:
  // nothing.
  ServerLayer secure = {};
  // Answers are compressed for clients that ask for it. Empty: none is.
  std::optional<Compression> compression = {};
  // Called after each answer, in its fiber, also after answers to heads that are refused. Empty:
  // nothing is measured.
  std::function<void(const Access&)> on_access = {};
  // Receives what a handler has thrown, before it is answered with 500. Empty: one line to stderr.
  std::function<void(std::exception_ptr)> on_exception = {};
  // How long requests may go on once the server is stopped by stop() or `stop`; then their contexts
  // end, and their connections are closed.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  // A request stops the server, as Server::stop() does: StopOnSignal::get_token(), say.
  std::stop_token stop = {};
};

// One reading; each figure is exact when nothing happens.
struct ServerStats {
  std::uint64_t accepted = 0;       // Connections ever.
  std::uint64_t connections = 0;    // Open now.
  std::uint64_t requests = 0;       // Heads that were proper requests.
  std::uint64_t refused = 0;        // Answered with 503 for want of a slot.
  std::uint64_t malformed = 0;      // Answered with another error before a handler was called.
  std::uint64_t accept_pauses = 0;  // Times that accept() failed and was tried again later.
  std::uint64_t turned_away = 0;    // Answered with 503 at once, for want of descriptors.
};

// A request that is being read or answered.
struct RequestInProgress {
  net::Address peer;             // A proxy's, if there is one between.
  std::uint64_t fiber = 0;       // The number of its fiber, or of its handler's, as in dumps.
  std::string method;            // At most 16 characters; empty until the head is complete.
  std::string target;            // At most 256 characters; empty until the head is complete.
  std::chrono::nanoseconds age;  // Since its first bytes were read, to within 10 ms.
  std::uint64_t received = 0;    // Bytes, with the head; a next request's may be among them.
  std::uint64_t sent = 0;        // Bytes, with the head; counted when a write ends.
};

class ServerCore;

// Answers requests on the connections of its listeners.
// A connection on which nothing is asked has no fiber that runs and no stack: it is a record of
// about 150 bytes, besides the poller's. When bytes come, a fiber reads the request, calls the
// handler and writes the answer; the next request may find another one. Call it from fibers and
// plain threads of one runtime; calls park, throw and synchronize where they say so.
class Server {
 public:
  // Throws std::invalid_argument that names the option; and what FiberPool's constructor throws.
  explicit Server(Handler handler, ServerOptions options = {});
  // shutdown(Deadline::past()).
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Accepts connections, as net::Server does, until stop(), shutdown(), a request of
  // ServerOptions::stop, or the close of a listener. It then takes clients that have connected,
  // closes the listeners, and returns an empty code; or the error that will not pass by itself.
  // If stop() or that request was first, it returns when all connections have ended, as after
  // shutdown() with ServerOptions::grace. It waits out a lack of descriptors or memory; a client
  // that waits for long is answered with 503. Parks. May be called several times at once, in fibers
  // of one runtime; listeners that share a port (net::listen_shared) accept independently.
  std::error_code serve(std::span<net::TcpListener> listeners);
  std::error_code serve(net::TcpListener& listener) { return serve(std::span(&listener, 1)); }

  // Begins the end of serve(), which has ServerOptions::grace for it, and returns at once. Call it
  // from any thread, any number of times, also before serve().
  void stop() noexcept;

  // Accepts no connection any more; connections on which nothing is asked are closed, others as
  // soon as their request is answered. A client that has not asked at all yet has half a second to
  // do so. Parks until all are. At the deadline contexts of requests that are left end and their
  // connections are closed; then it waits for their handlers to return. Only the deadline ends the
  // wait early, it takes no stop request; shutdown(Deadline::past()) of another caller does, too.
  // True if the deadline was not needed. Call it from fibers and plain threads, more than once.
  // Called by a handler, a talk or a log, it does not wait for the connection of that call, nor for
  // connections of other calls in shutdown(): each can be answered when it returns.
  bool shutdown(Deadline grace);

  // Each number may be stale when they return. From anywhere; never parks.
  [[nodiscard]] ServerStats stats() const noexcept;

  // The requests that have gone on for longest, the longest first: at most `most` of them, and at
  // most 256. Slow clients are at its front, and so are slow handlers. Takes time in proportion to
  // the number of connections. From anywhere; never parks. Throws std::bad_alloc.
  [[nodiscard]] std::vector<RequestInProgress> longest_requests(std::size_t most = 20) const;

 private:
  const std::unique_ptr<ServerCore> core_;
};

}  // namespace weft::http
