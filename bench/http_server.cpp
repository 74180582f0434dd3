// weft-http's side of W9_http in bench/compare_net: a complete HTTP layer, with all headers, limits
// and timeouts, answers each request with 13 bytes. For bench/malice it also accepts bodies and
// sends large answers. The server runs until it is killed.
//
//   http_server --listen 127.0.0.1:8080 --workers 1
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <weft/http/server.hpp>
#include <weft/runtime.hpp>
#ifdef WEFT_HAS_TLS
#include <weft/tls/http.hpp>
#endif

namespace weft::bench {
namespace {

struct Options {
  std::string listen = "127.0.0.1:8080", certificate, key;
  std::size_t max_running = 0;
  double idle_seconds = 0, body_seconds = 0, write_seconds = 0;
};

void set_seconds(std::chrono::nanoseconds& limit, double seconds) {
  if (seconds > 0) limit = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

// Makes the answer on the first call, because an ordinary server does not need it.
std::string_view large_answer() {
  static const std::string text(16 << 20, 'x');
  return text;
}

void answer(http::Request& request, http::Response& response) {
  if (request.has_body() && request.read_all().error) return;  // The server sends the error.
  response.add_header("Content-Type", "text/plain");
  (void)response.send(request.target() == "/large" ? large_answer() : "Hello, World!");
}

int listen_and_serve(const Options& asked) {
  const auto [address, malformed] = net::Address::parse(asked.listen);
  auto [listener, error] = net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "http_server: cannot listen on %s\n", asked.listen.c_str());
    return EXIT_FAILURE;
  }
  http::ServerOptions options;
  if (!asked.certificate.empty()) {
#ifdef WEFT_HAS_TLS
    auto [context, refused] =
        tls::Context::server({.certificate_file = asked.certificate, .key_file = asked.key});
    if (refused) return EXIT_FAILURE;
    options.secure = tls::server_layer(context);
#else
    return EXIT_FAILURE;
#endif
  }
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  set_seconds(options.limits.idle, asked.idle_seconds);
  set_seconds(options.limits.body, asked.body_seconds);
  set_seconds(options.limits.write, asked.write_seconds);
  if (asked.max_running > 0) options.max_running = asked.max_running;
  options.max_queued = 65536;
  http::Server server(answer, options);
  return server.serve(listener) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  CLI::App app("Answers HTTP requests with 13 bytes.");
  weft::bench::Options asked;
  weft::RuntimeOptions options;
  app.add_option("--listen", asked.listen, "address and port; port 0 lets the system choose");
  app.add_option("--workers", options.workers, "worker threads")->check(CLI::Range(0, 1024));
  app.add_option("--max-running", asked.max_running,
                 "run handlers in a pool of so many; 0: in none");
  app.add_option("--idle", asked.idle_seconds,
                 "close connections on which nothing was asked for so many seconds; 0: as usual");
  app.add_option("--body", asked.body_seconds, "seconds that a body may take; 0: as usual");
  app.add_option("--write", asked.write_seconds,
                 "seconds that a client may take to read; 0: as usual");
  app.add_option("--certificate", asked.certificate, "a PEM file: serve by TLS");
  app.add_option("--key", asked.key, "the certificate's key");
  CLI11_PARSE(app, argc, argv);
  return weft::run(options, [&] { return weft::bench::listen_and_serve(asked); });
}
