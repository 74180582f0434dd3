// Is a web server for clients that block: it answers "/" at once, and "/slow" after 0.1 s. It
// listens on two ports that the system chooses, with TLS on the second one, and writes their
// numbers.
//
//   posix_site CERTIFICATE KEY
#include <chrono>
#include <cstdio>
#include <weft/go.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/tls/http.hpp>

namespace {

int serve(const char* certificate, const char* key) {
  weft::http::Router router;
  router
      .get("/", [](weft::http::Request&,
                   weft::http::Response& response) { (void)response.send("answered"); })
      .get("/slow", [](weft::http::Request&, weft::http::Response& response) {
        weft::this_fiber::sleep_for(std::chrono::milliseconds(100));
        (void)response.send("answered");
      });
  const auto [address, malformed] = weft::net::Address::parse("127.0.0.1:0");
  auto [plain, no_plain] = weft::net::TcpListener::listen(address);
  auto [secure, no_secure] = weft::net::TcpListener::listen(address);
  auto [context, no_context] =
      weft::tls::Context::server({.certificate_file = certificate, .key_file = key});
  if (malformed || no_plain || no_secure || no_context) {
    std::fprintf(stderr, "posix_site: %s\n", no_context.message().c_str());
    return 1;
  }
  std::printf("ports %d %d\n", plain.local_address().value.port(),
              secure.local_address().value.port());
  std::fflush(stdout);
  weft::http::Server with_tls(router, {.secure = weft::tls::server_layer(context)});
  weft::http::Server without(router);
  weft::go([&with_tls, &listener = secure] { (void)with_tls.serve(listener); });
  return without.serve(plain) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return weft::run([&] { return serve(argv[1], argv[2]); });
}
