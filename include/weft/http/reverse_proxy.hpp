// Forwards requests to several servers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/http/client.hpp>
#include <weft/http/forward.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>

namespace weft::http {

// Configures the requests that check whether a server is working.
struct HealthCheck {
  // The server must answer a GET request for this target, such as "/health", with a status below
  // 400 and a body of at most 64 KiB. Empty: no checks.
  std::string target = {};
  // The time between two checks of a server.
  std::chrono::nanoseconds every = std::chrono::seconds(5);
  // The longest wait for the response.
  std::chrono::nanoseconds wait = std::chrono::seconds(2);
};

struct ReverseProxyOptions {
  // The URLs of the servers, such as {"http://127.0.0.1:9001", "http://127.0.0.1:9002"}.
  std::vector<std::string> origins = {};
  // Options for the connections to the servers. The proxy relays redirects to its client, whatever
  // max_redirects is; `cookies` must be null.
  ClientOptions client = {};
  // Options for the headers of forwarded requests. `client.secure` replaces its `secure`.
  ForwardOptions forward = {};
  // The time limit of an attempt, from the wait for a connection to the head of the server's
  // response. The timer stops while the proxy reads a part of the client's body, and then restarts
  // from zero. Upgrades have the same limit. kNever: no limit.
  std::chrono::nanoseconds answer = std::chrono::minutes(1);
  // How long the proxy prefers other servers after an attempt with one server has failed.
  std::chrono::nanoseconds rest = std::chrono::seconds(5);
  // Configures the checks of all servers. After a failed check of a server, the proxy prefers
  // servers that passed their last checks and had no failed attempt within `rest`.
  HealthCheck health = {};
  // Called for each failed attempt, in the request's fiber. Empty: not called.
  std::function<void(const Request&, std::string_view origin, std::error_code)> on_error = {};
};

// Holds figures about a server behind a proxy. The figures may be stale.
struct OriginStats {
  std::string origin;
  bool is_healthy = true;      // The last check succeeded, or there was no check.
  bool rests = false;          // The latest failure was less than ReverseProxyOptions::rest ago.
  std::size_t running = 0;     // Requests being forwarded, not counting upgraded connections.
  std::uint64_t requests = 0;  // Attempts so far.
  std::uint64_t failures = 0;  // Failed attempts that indicate a server fault.
};

// Forwards each request to the preferred server with the fewest running requests; streams bodies.
// Relays upgrades, such as WebSockets. After a failure, the proxy tries the other servers, unless
// it has read part of the body, the response has begun, the client has left, or a message is
// malformed. Unless the server refused the connection, the proxy retries only idempotent requests
// (GET, HEAD, OPTIONS, TRACE, PUT, DELETE). It answers with 502 if all attempts fail, and with 504
// if the last one took too long. It never repeats a request after a full response of any status.
//
//   ReverseProxy proxy({.origins = {"http://127.0.0.1:9001", "http://127.0.0.1:9002"}});
//
// Pass `std::ref(proxy)` as the Handler of a Server, whose max_running or pool limits the running
// requests. ClientOptions::max_per_host should be at least this limit.
// Context: any number of fibers; calls and the destructor park.
// Throws: std::bad_alloc; forwarding also throws whatever go() and `on_error` throw.
// Lifetime: the proxy must outlive its calls, and must not outlive the runtime.
class ReverseProxy {
 public:
  // Starts one fiber per server for its checks, if HealthCheck::target is not empty.
  // Throws: exceptions of go(); std::invalid_argument, which names the invalid option. Origins must
  // be http or https URLs without a path; https requires client.secure.
  explicit ReverseProxy(ReverseProxyOptions options);
  // Ends the checks.
  ~ReverseProxy();
  ReverseProxy(const ReverseProxy&) = delete;
  ReverseProxy& operator=(const ReverseProxy&) = delete;

  // Forwards a request to a server, and relays the server's response.
  void operator()(Request& request, Response& response);

  // Returns the state of each server, in the order of the options.
  [[nodiscard]] std::vector<OriginStats> origins() const;

 private:
  struct Core;
  const std::unique_ptr<Core> core_;
};

}  // namespace weft::http
