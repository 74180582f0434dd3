// Is a reverse proxy: it balances over several servers, checks their health, streams both ways,
// relays WebSockets, and tries another server if one fails.
//
//   reverse_proxy --listen 127.0.0.1:8080 --to http://127.0.0.1:9001 http://127.0.0.1:9002
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/http/reverse_proxy.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>

#include "command_line.hpp"

namespace {

struct Options {
  std::string listen = "127.0.0.1:8080";
  std::vector<std::string> to;
  std::string health;
  double rest = 5;  // Seconds.
  std::size_t max_running = 1000;
};

std::chrono::nanoseconds seconds(double count) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(count));
}

void report(const weft::http::Request& request, std::string_view origin, std::error_code error) {
  std::fprintf(stderr, "reverse_proxy: %.*s for %.*s: %s\n", static_cast<int>(origin.size()),
               origin.data(), static_cast<int>(request.method().size()), request.method().data(),
               error.message().c_str());
}

int serve(const Options& options) {
  const auto [address, malformed] = weft::net::Address::parse(options.listen);
  auto [listener, error] = weft::net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "reverse_proxy: cannot listen on %s\n", options.listen.c_str());
    return 1;
  }
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  weft::http::ReverseProxy proxy({.origins = options.to,
                                  .client = {.max_per_host = options.max_running},
                                  .rest = seconds(options.rest),
                                  .health = {.target = options.health},
                                  .on_error = report});
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
  line.add("--health", options.health, "target of health checks, such as /health; empty: none");
  line.add("--rest", options.rest, "seconds without requests for a server that fails");
  line.add("--max-running", options.max_running, "requests that are forwarded at once");
  line.require("--to");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(options); }); });
}
