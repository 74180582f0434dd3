// weft's side of bench/idle_connections: net::serve alone. An idle connection uses neither a
// running fiber nor a stack. The server runs until it is killed.
//
//   idle_server --listen 127.0.0.1:8080 --workers 1
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <weft/net/serve.hpp>
#include <weft/runtime.hpp>

#include "bench/hello.hpp"

namespace weft::bench {
namespace {

net::Next answer(net::Connection& connection) {
  RequestEnds ends;
  std::array<char, 4096> buffer;
  do {
    const auto [count, error] =
        connection.bytes().read_some(std::as_writable_bytes(std::span(buffer)));
    if (error) return net::Next::close;
    if (ends.count_in({buffer.data(), count}) > 0) break;
  } while (true);
  const bool lost = bool(connection.bytes().write_all(std::as_bytes(std::span(kHello))).error);
  return lost ? net::Next::close : net::Next::idle;
}

int listen_and_serve(const std::string& where) {
  const auto [address, malformed] = net::Address::parse(where);
  auto [listener, error] = net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "idle_server: cannot listen on %s\n", where.c_str());
    return EXIT_FAILURE;
  }
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  return net::serve(listener, answer) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  CLI::App app("Answers requests, and keeps their connections.");
  std::string listen = "127.0.0.1:8080";
  weft::RuntimeOptions options;
  app.add_option("--listen", listen, "address and port; port 0 lets the system choose");
  app.add_option("--workers", options.workers, "worker threads")->check(CLI::Range(0, 1024));
  CLI11_PARSE(app, argc, argv);
  return weft::run(options, [&] { return weft::bench::listen_and_serve(listen); });
}
