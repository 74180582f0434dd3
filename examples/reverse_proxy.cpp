// A reverse proxy: it balances over several servers, streams both ways, relays WebSocket, and asks
// another server if one cannot be reached.
//
//   reverse_proxy --listen 127.0.0.1:8080 --to http://127.0.0.1:9001 http://127.0.0.1:9002
//
// A server that cannot be reached rests for some seconds.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>
#include <weft/http/error.hpp>
#include <weft/http/forward.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>

#include "command_line.hpp"

namespace {

using weft::Deadline;
using weft::http::Request;
using weft::http::Response;

struct Options {
  std::string listen = "127.0.0.1:8080";
  std::vector<std::string> to;
  double rest = 5;  // Seconds.
  std::size_t max_running = 1000;
};

constexpr std::array<std::string_view, 5> kIdempotent = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};

class Proxy {
 public:
  explicit Proxy(const Options& options)
      : rest_(options.rest), client_({.max_per_host = options.max_running, .max_redirects = 0}) {
    for (const std::string& origin : options.to) hosts_.emplace_back().origin = origin;
  }

  void operator()(Request& request, Response& response) {
    const weft::Until until = request.context();
    std::error_code error;
    for (std::size_t attempt = 0; attempt < hosts_.size(); ++attempt) {
      Host& host = next_host();
      error = ask(host, request, response, until);
      if (!error || response.started() || until.is_over()) return;
      // Without a body the host is to blame, unless the request itself cannot be sent.
      if (!may_ask_again(request) || error == weft::http::ErrorKind::malformed) break;
      host.rests_until = Deadline::after(rest_).nanoseconds();
    }
    std::fprintf(stderr, "reverse_proxy: %s\n", error.message().c_str());
    response.set_status(error == weft::Errc::timed_out ? 504 : 502);
    (void)response.send("the server behind this proxy does not answer\n");
  }

 private:
  struct Host {
    std::string origin;
    std::atomic<std::int64_t> rests_until = 0;
  };

  // The next one that does not rest, or, if all rest, the next one.
  Host& next_host() {
    for (std::size_t i = 0; i + 1 < hosts_.size(); ++i) {
      Host& host = hosts_[turn_++ % hosts_.size()];
      if (host.rests_until <= Deadline::now_nanoseconds()) return host;
    }
    return hosts_[turn_++ % hosts_.size()];
  }

  weft::Result<void> ask(const Host& host, Request& request, Response& response,
                         const weft::Until& until) {
    if (weft::http::asks_for_upgrade(request)) {
      return weft::http::forward_upgrade(request, response, host.origin, {}, until);
    }
    auto [reply, error] = client_.send(weft::http::forward_call(request, host.origin), until);
    if (error) return error;
    return weft::http::forward_reply(reply, response, until);
  }

  static bool may_ask_again(const Request& request) {
    const auto* const found = std::find(kIdempotent.begin(), kIdempotent.end(), request.method());
    return !request.has_body() && found != kIdempotent.end();
  }

  const std::chrono::duration<double> rest_;
  std::deque<Host> hosts_;
  std::atomic<std::size_t> turn_ = 0;
  weft::http::Client client_;
};

int serve(const Options& options) {
  const auto [address, malformed] = weft::net::Address::parse(options.listen);
  auto [listener, error] = weft::net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "reverse_proxy: cannot listen on %s\n", options.listen.c_str());
    return 1;
  }
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  Proxy proxy(options);
  const weft::StopOnSignal stop;
  weft::http::ServerOptions setup;
  setup.limits.body_bytes = 1024 * 1024 * 1024;
  setup.max_running = options.max_running;  // A FiberPool of the server is the cap.
  setup.max_queued = 10 * options.max_running;
  setup.grace = std::chrono::seconds(5);
  setup.stop = stop.get_token();
  weft::http::Server server(std::ref(proxy), setup);
  return server.serve(listener) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("reverse_proxy", "A proxy in front of several web servers.");
  Options options;
  line.add("--listen", options.listen, "address and port; port 0 lets the system choose");
  line.add("--to", options.to, "origins of the servers: http://127.0.0.1:9001");
  line.add("--rest", options.rest, "seconds without requests for a server that fails");
  line.add("--max-running", options.max_running, "requests that are forwarded at once");
  line.require("--to");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(options); }); });
}
