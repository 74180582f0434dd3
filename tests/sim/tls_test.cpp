#include <chrono>
#include <string>
#include <utility>
#include <weft/http/client.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>
#include <weft/tls/http.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/tls/certificates.hpp"

TEST_SUITE_BEGIN("sim/tls");

using namespace std::chrono_literals;
namespace http = weft::http;
namespace net = weft::net;
namespace sim = weft::sim;
namespace tls = weft::tls;

TEST_CASE(
    "HTTPS between simulated hosts works again after lost packets and a crash of the server") {
  const weft::test::TestGuard guard("HTTPS between hosts");
  const weft::test::Certificates certificates;
  certificates.make("server", "server");
  const auto server_context =
      tls::Context::server({.certificate_file = certificates.certificate("server"),
                            .key_file = certificates.key("server")})
          .value;
  const auto client_context =
      tls::Context::client({.authorities_file = certificates.authority()}).value;
  // Handshakes take more stack than most fibers have.
  sim::explore({.seeds = 5, .stack_size = 512 << 10}, [&](sim::World& world) {
    world.network().latency(1ms, 20ms).loss(0.02);
    world.host("server", [&] {
      http::Server server(
          [](http::Request&, http::Response& response) { (void)response.send("x"); },
          {.secure = tls::server_layer(server_context)});
      auto listener = net::TcpListener::listen(net::Address::any_v4(443));
      (void)server.serve(listener.value);
    });
    http::Client client({.secure = tls::client_layer(client_context)});
    for (int i = 0; i < 3; ++i) {
      world.run_for(100ms);
      auto [reply, error] = client.get("https://server/");
      CHECK(!error);
      CHECK(reply.read_all().value == "x");
      if (i == 1) world.restart("server");
    }
  });
}

TEST_SUITE_END();
