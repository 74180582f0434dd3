// A web server: routes, a cap on the requests that are handled at once, a log, and a graceful end.
//
//   http_hello --listen 127.0.0.1:8080 &
//   curl http://127.0.0.1:8080/hello/you
//   curl --data-binary @file http://127.0.0.1:8080/count
//
// The server ends after --seconds.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

using weft::http::Request;
using weft::http::Response;

void say_hello(Request& request, Response& response) {
  response.add_header("Content-Type", "text/plain");
  (void)response.send("Hello, " + request.parameter("name") + "!\n");
}

// Reads a body part by part, because it may be larger than memory.
void count_bytes(Request& request, Response& response) {
  std::array<std::byte, 16 * 1024> part;
  std::size_t total = 0;
  for (;;) {
    const auto [count, error] = request.read_some(part);
    if (error == weft::Errc::end_of_stream) break;
    if (error) return;  // The server sends the error.
    total += count;
  }
  (void)response.send(std::to_string(total) + "\n");
}

// Sends an answer in parts, until the client hangs up.
void count_seconds(Request& request, Response& response) {
  for (int second = 1; second <= 60; ++second) {
    if (!response.write(std::to_string(second) + "\n")) return;
    if (!weft::this_fiber::sleep_for(std::chrono::seconds(1), request.context())) return;
  }
}

void log_access(const weft::http::Access& access) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(access.duration);
  std::printf("%s %s %d %llu bytes, %lld us\n", std::string(access.request.method()).c_str(),
              std::string(access.request.target()).c_str(), access.status,
              static_cast<unsigned long long>(access.bytes), static_cast<long long>(took.count()));
}

int serve(const std::string& where, double seconds) {
  const auto [address, malformed] = weft::net::Address::parse(where);
  auto [listener, error] = weft::net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "http_hello: cannot listen on %s\n", where.c_str());
    return 1;
  }
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);

  weft::http::Router router;
  router.get("/hello/{name}", say_hello).post("/count", count_bytes).get("/seconds", count_seconds);
  weft::http::ServerOptions options;
  options.max_running = 100;  // Requests, not connections.
  options.max_queued = 1000;  // Further requests get 503.
  options.limits.body_bytes = 100 * 1024 * 1024;
  options.on_access = log_access;
  options.grace = std::chrono::seconds(5);  // For requests in progress at the end.
  const weft::StopOnSignal stop;            // Ctrl-C ends the server.
  options.stop = stop.get_token();
  weft::http::Server server(router, options);
  weft::TaskGroup limit;
  limit.spawn_after(std::chrono::duration<double>(seconds), [&server] { server.stop(); });
  const std::error_code failed = server.serve(listener);
  limit.cancel();
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("http_hello", "A web server.");
  std::string listen = "127.0.0.1:8080";
  double seconds = 3600;
  line.add("--listen", listen, "address and port; port 0 lets the system choose");
  line.add("--seconds", seconds, "how long");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(listen, seconds); }); });
}
