// weft's side of W9_http in bench/compare_net: a fiber for each connection answers each request
// with 13 bytes. The server runs until it is killed.
//
//   hello_server --listen 127.0.0.1:8080 --workers 1
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/runtime.hpp>

#include "bench/hello.hpp"

namespace weft::bench {
namespace {

void serve(net::TcpStream& stream) {
  RequestEnds ends;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto [count, error] = stream.read_some(std::as_writable_bytes(std::span(buffer)));
    if (error) return;
    for (std::size_t left = ends.count_in({buffer.data(), count}); left > 0; --left) {
      if (stream.write_all(std::as_bytes(std::span(kHello))).error) return;
    }
  }
}

int listen_and_serve(const std::string& where) {
  const auto [address, malformed] = net::Address::parse(where);
  auto [listener, error] = net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "hello_server: cannot listen on %s\n", where.c_str());
    return EXIT_FAILURE;
  }
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  for (;;) {
    auto [stream, refused] = listener.accept();
    if (refused) return EXIT_FAILURE;
    go([accepted = std::move(stream)]() mutable { serve(accepted); });
  }
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  CLI::App app("Answers HTTP requests with 13 bytes.");
  std::string listen = "127.0.0.1:8080";
  weft::RuntimeOptions options;
  app.add_option("--listen", listen, "address and port; port 0 lets the system choose");
  app.add_option("--workers", options.workers, "worker threads")->check(CLI::Range(0, 1024));
  CLI11_PARSE(app, argc, argv);
  return weft::run(options, [&] { return weft::bench::listen_and_serve(listen); });
}
