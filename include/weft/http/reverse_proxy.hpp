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

// Configures the requests that check whether a server works.
struct HealthCheck {
  // A GET of this target, "/health", must return a status below 400 within `wait`. Empty: no
  // checks.
  std::string target = {};
  // The time between two checks of a server.
  std::chrono::nanoseconds every = std::chrono::seconds(5);
  // The longest wait for the answer.
  std::chrono::nanoseconds wait = std::chrono::seconds(2);
};

struct ReverseProxyOptions {
  // The URLs of the servers: {"http://127.0.0.1:9001", "http://127.0.0.1:9002"}.
  std::vector<std::string> origins = {};
  // Options for the connections to the servers. Redirects go to the proxy's client, whatever
  // max_redirects is; `cookies` must be null.
  ClientOptions client = {};
  // Options for the headers of forwarded requests. Upgrades use the layer `client.secure`.
  ForwardOptions forward = {};
  // The time limit from the wait for a connection to the head of the server's answer, also for an
  // upgrade. With a body, the limit applies separately until the first part is sent, to each part,
  // and after the last part. At the limit, the attempt fails. kNever: no limit.
  std::chrono::nanoseconds answer = std::chrono::minutes(1);
  // How long a server receives no requests after a failure, if another server has not failed.
  std::chrono::nanoseconds rest = std::chrono::seconds(5);
  // The checks of all servers. After a failed check, a server gets no requests while another server
  // passes its check.
  HealthCheck health = {};
  // Called for each failed attempt, in the request's fiber. Empty: not called.
  std::function<void(const Request&, std::string_view origin, std::error_code)> on_error = {};
};

// Holds figures of a server behind a proxy, which may be stale.
struct OriginStats {
  std::string origin;
  bool is_healthy = true;      // The last check succeeded, or there was no check.
  bool rests = false;          // An attempt has failed within ReverseProxyOptions::rest.
  std::size_t running = 0;     // Requests being forwarded, without upgraded connections.
  std::uint64_t requests = 0;  // Attempts so far.
  std::uint64_t failures = 0;  // Failed attempts, without failures of the client.
};

// Forwards each request to the healthy server with the fewest running requests, and streams bodies
// in both directions. Upgrades, such as WebSockets, are relayed. After a failed attempt, the proxy
// tries the other servers, unless it has read a byte of the body. Unless the server refused the
// connection, a further try also requires an idempotent method (GET, HEAD, OPTIONS, TRACE, PUT,
// DELETE). The proxy answers with 502 if all attempts fail, and with 504 if the last attempt took
// too long. The proxy never repeats a request that a server has answered, whatever the status.
//
//   ReverseProxy proxy({.origins = {"http://127.0.0.1:9001", "http://127.0.0.1:9002"}});
//
// `std::ref(proxy)` is the Handler of a Server, whose max_running or pool limits the running
// requests; ClientOptions::max_per_host should not be smaller. Each server's checks use a fiber.
// Context: any number of fibers; parks, as does the destructor.
// Throws: std::bad_alloc.
// Lifetime: the proxy must outlive its calls, and must not outlive the runtime.
class ReverseProxy {
 public:
  // Starts the checks.
  // Throws: whatever go() throws, and std::invalid_argument that names the option: no origin, an
  // origin that is not an http or https URL without a path, https without client.secure, or a time
  // that is not above 0.
  explicit ReverseProxy(ReverseProxyOptions options);
  // Ends the checks.
  ~ReverseProxy();
  ReverseProxy(const ReverseProxy&) = delete;
  ReverseProxy& operator=(const ReverseProxy&) = delete;

  // Forwards a request, and answers it with the answer of a server.
  void operator()(Request& request, Response& response);

  // Returns the state of each server, in the order of the options.
  [[nodiscard]] std::vector<OriginStats> origins() const;

 private:
  struct Core;
  const std::unique_ptr<Core> core_;
};

}  // namespace weft::http
