// weft-http's side of W9_http in bench/compare_net: a whole HTTP layer, with all headers, limits
// and times, answers each request with 13 bytes. It serves until it is killed.
//
//   http_server --listen 127.0.0.1:8080 --workers 1
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <weft/http/server.hpp>
#include <weft/runtime.hpp>

namespace weft::bench {
namespace {

int listen_and_serve(const std::string& where, std::size_t max_running) {
  const auto [address, malformed] = net::Address::parse(where);
  auto [listener, error] = net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "http_server: cannot listen on %s\n", where.c_str());
    return EXIT_FAILURE;
  }
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  http::ServerOptions options;
  if (max_running > 0) options.max_running = max_running;
  options.max_queued = 65536;
  http::Server server(
      [](http::Request&, http::Response& response) {
        response.add_header("Content-Type", "text/plain");
        (void)response.send("Hello, World!");
      },
      options);
  return server.serve(listener) ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  CLI::App app("Answers HTTP requests with 13 bytes.");
  std::string listen = "127.0.0.1:8080";
  std::size_t max_running = 0;
  weft::RuntimeOptions options;
  app.add_option("--listen", listen, "address and port; port 0 lets the system choose");
  app.add_option("--workers", options.workers, "worker threads")->check(CLI::Range(0, 1024));
  app.add_option("--max-running", max_running, "run handlers in a pool of so many; 0: in none");
  CLI11_PARSE(app, argc, argv);
  return weft::run(options, [&] { return weft::bench::listen_and_serve(listen, max_running); });
}
