#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/metrics.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/sim.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/http");

using namespace std::chrono_literals;
namespace http = weft::http;
namespace net = weft::net;
namespace sim = weft::sim;

namespace {

// Runs a typical server, whose handler uses a pool.
void run_server() {
  weft::FiberPool pool({.capacity = 4, .queue_capacity = 100});
  http::Server server([&pool](http::Request& request, http::Response& response) {
    std::string answer = "got " + request.read_all().value;
    pool.run([] { weft::this_fiber::sleep_for(1ms); });
    (void)response.send(answer);
  });
  auto [listener, error] = net::TcpListener::listen(net::Address::any_v4(80));
  CHECK(!error);
  (void)server.serve(listener);
}

// Returns the body of the answer, or an error.
net::Result<std::string> ask(http::Client& client, const std::string& body,
                             const weft::Until& until = {}) {
  auto [reply, error] =
      client.send({.method = "PUT", .url = "http://server/x", .body = body}, until);
  if (error) return {.error = error};
  return reply.read_all(until);
}

}  // namespace

TEST_CASE(
    "simulated HTTP clients, a server and its pool behave identically in every run with the same "
    "seed") {
  const weft::test::TestGuard guard("clients, a server and its pool work unchanged");
  const sim::Report report = sim::check_determinism({.seeds = 30}, [](sim::World& world) {
    world.network().latency(1ms, 20ms).loss(0.02);
    world.host("server", &run_server);
    world.run_for(1ms);
    http::Client client({.max_per_host = 3});
    weft::TaskGroup group;
    for (int i = 0; i < 10; ++i) {
      group.spawn([&client, i] {
        for (int j = 0; j < 5; ++j) {
          const std::string body = std::to_string(i) + "/" + std::to_string(j);
          const auto answer = ask(client, body);
          CHECK(!answer.error);
          CHECK(answer.value == "got " + body);
        }
      });
    }
    group.wait();
    CHECK(client.stats().connections <= 3);
  });
  CHECK(report.runs == 30);
}

TEST_CASE(
    "repeatable HTTP requests succeed again after crashes, partitions and stops of the simulated "
    "server") {
  const weft::test::TestGuard guard("requests that may be repeated survive");
  const sim::Report report = sim::explore({.seeds = 100}, [](sim::World& world) {
    world.network().latency(1ms, 20ms).loss(0.02);
    world.host("server", &run_server);
    world.disturb({.partitions = 2, .restarts = 2, .stops = 2, .within = 20s, .longest = 3s});
    http::Client client({.connect = 2s});
    int answers = 0;
    for (int i = 0; i < 20; ++i) {
      const auto answer = ask(client, std::to_string(i), 5s);
      if (!answer.error) ++answers;
      world.run_for(1s);
    }
    world.heal();
    world.run_for(1min);
    CHECK(ask(client, "the last", 30s).value == "got the last");
    CHECK(answers > 0);
  });
  CHECK(report.simulated > 100min);
}

TEST_CASE("the idle time limit of an HTTP server closes an unused connection in virtual time") {
  const weft::test::TestGuard guard("a connection that nobody uses is closed");
  sim::explore({.seeds = 10}, [](sim::World& world) {
    world.host("server", [] {
      http::Server server(
          [](http::Request&, http::Response& response) { (void)response.send("x"); },
          {.limits = {.idle = 24h}});
      auto listener = net::TcpListener::listen(net::Address::any_v4(80));
      (void)server.serve(listener.value);
    });
    world.run_for(1ms);
    auto [stream, error] = net::dial("server:80");
    REQUIRE(!error);
    const auto before = weft::Clock::now();
    CHECK(stream.wait_readable());
    std::array<std::byte, 1> one{};
    CHECK(stream.read_some(one).error == weft::Errc::end_of_stream);
    CHECK(weft::Clock::now() - before >= 24h);
    CHECK(weft::Clock::now() - before <= 49h);
  });
}

TEST_CASE(
    "an HTTP client repeats a request when the server has just closed the kept-alive connection") {
  const weft::test::TestGuard guard("a client repeats a request");
  std::uint64_t retried = 0;
  sim::explore({.seeds = 200}, [&](sim::World& world) {
    world.network().latency(500ms, 1s);
    world.host("server", [] {
      http::Server server(
          [](http::Request&, http::Response& response) { (void)response.send("x"); },
          {.limits = {.idle = 10s}});
      auto listener = net::TcpListener::listen(net::Address::any_v4(80));
      (void)server.serve(listener.value);
    });
    world.run_for(1s);
    http::Client client({.idle = 1h});
    CHECK(!client.get("http://server/").value.read_all().error);
    // The server closes the connection at about this moment, after one to two idle times.
    world.run_for(10s + std::chrono::milliseconds(sim::random(10'000)));
    CHECK(!client.get("http://server/").error);
    retried += client.stats().retried;
  });
  CHECK(retried > 0);
}

TEST_CASE("the Date header of a response follows the virtual clock") {
  const weft::test::TestGuard guard("dates of answers follow the virtual clock");
  sim::explore({.seeds = 1}, [](sim::World& world) {
    world.host("server", &run_server);
    world.run_for(24h);
    http::Client client;
    const auto [reply, error] = client.get("http://server/");
    REQUIRE(!error);
    CHECK(reply.header("Date").value() == "Wed, 02 Jan 2030 00:00:00 GMT");
  });
}

TEST_CASE("a simulated HTTP server uses its host's clock for dates and limits") {
  const weft::test::TestGuard guard("a server shows the date of its host");
  sim::explore({.seeds = 3}, [](sim::World& world) {
    world.host("server", [] {
      http::Server server(
          [](http::Request&, http::Response& response) { (void)response.send("x"); },
          {.limits = {.idle = 60s}});
      auto listener = net::TcpListener::listen(net::Address::any_v4(80));
      (void)server.serve(listener.value);
    });
    world.clock_drift("server", 1'000'000);
    world.clock_jump("server", 24h * 365);
    world.run_for(1ms);
    {
      http::Client client;
      auto [reply, error] = client.get("http://server/");
      CHECK(!error);
      CHECK(reply.header("Date") == "Wed, 01 Jan 2031 00:00:00 GMT");
    }
    auto [stream, error] = net::dial("server:80");
    CHECK(!error);
    const auto before = weft::Clock::now();
    CHECK(stream.wait_readable());  // The server closes it.
    CHECK(weft::Clock::now() - before > 29s);
    CHECK(weft::Clock::now() - before < 35s);
  });
}

TEST_CASE("the metrics of a simulated host show only the host's current process") {
  const weft::test::TestGuard guard("the metrics of a host show its own process");
  std::string first;
  sim::explore({.seeds = 3}, [&](sim::World& world) {
    world.host("other", &run_server);
    world.host("server", [&] {
      const weft::FiberPool pool({.capacity = 1, .name = "work"});
      const http::Server server([](http::Request&, http::Response&) {});
      weft::this_fiber::sleep_for(1s);
      weft::metrics::Reading reading = weft::metrics::read();
      reading.runtimes.clear();  // The times of the runtimes differ.
      std::ostringstream page;
      weft::metrics::write_prometheus(page, reading);
      if (first.empty()) first = page.str();
      CHECK(page.str() == first);
    });
    world.run_for(500ms);
    world.restart("server");
    world.run_for(2s);
  });
  CHECK(first.find("weft_pool_capacity{pool=\"work\"} 1\n") != std::string::npos);
  CHECK(first.find("weft_http_accepted_total{server=\"http\"} 0\n") != std::string::npos);
  CHECK(first.find("number=") == std::string::npos);
}

TEST_CASE("a runtime ends normally even if an earlier simulation left an idle pool worker behind") {
  const weft::test::TestGuard guard("a runtime ends although a world has left a worker");
  sim::explore({.seeds = 1}, [](sim::World& world) {
    world.host("server", [] {
      weft::FiberPool pool({.capacity = 1, .idle_timeout = 24h});
      (void)pool.submit([] {});
      weft::this_fiber::sleep_for(24h);
    });
    world.run_for(1s);
  });
  int number = 0;
  weft::run([&] { number = 1; });
  CHECK(number == 1);
}

TEST_SUITE_END();
