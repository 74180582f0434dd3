// Tests the figures of servers in the metrics.
#include <weft/metrics.hpp>

#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <weft/event.hpp>
#include <weft/http/router.hpp>
#include <weft/live_page.hpp>
#include <weft/net/serve.hpp>
#include <weft/this_fiber.hpp>
#include <weft/trace.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

std::string prometheus_page() {
  std::ostringstream out;
  metrics::write_prometheus(out);
  return out.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The connection ends once the answer has been counted.
void ask_and_wait(const HttpServer& server, const std::string& path) {
  net::TcpStream stream = server.connect();
  send_text(stream, "GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  CHECK(receive_all(stream).starts_with("HTTP/1.1 "));
}

TEST_SUITE_BEGIN("http/metrics");

FIBER_TEST_CASE(
    "the metrics show a server's statistics and count its responses by route and status") {
  http::Router router;
  router.get("/users/{id}", [](http::Request& request, http::Response& response) {
    if (request.parameter("id") == "0") response.set_status(500);
    (void)response.send("x");
  });
  router.get("/broken", [](http::Request&, http::Response& response) {
    (void)response.write("part");
    response.break_off();
  });
  const HttpServer server(router, {.name = "shop"});
  ask_and_wait(server, "/users/1");
  ask_and_wait(server, "/users/2");
  ask_and_wait(server, "/users/0");
  ask_and_wait(server, "/none");
  ask_and_wait(server, "/broken");
  const std::string page = prometheus_page();
  CHECK(contains(page, "\nweft_http_accepted_total{server=\"shop\"} 5\n"));
  CHECK(contains(page, "\nweft_http_requests_total{server=\"shop\"} 5\n"));
  CHECK(contains(page, "_total{server=\"shop\",route=\"GET /broken\",status=\"broken\"} 1\n"));
  const std::string route = "{server=\"shop\",route=\"GET /users/{id}\"";
  CHECK(contains(page, "\nweft_http_answers_total" + route + ",status=\"2xx\"} 2\n"));
  CHECK(contains(page, "\nweft_http_answers_total" + route + ",status=\"5xx\"} 1\n"));
  CHECK(contains(page, "_total{server=\"shop\",route=\"none\",status=\"4xx\"} 1\n"));
  CHECK(contains(page, "\n# TYPE weft_http_request_seconds histogram\n"));
  CHECK(contains(page, "\nweft_http_request_seconds_count" + route + "} 3\n"));
  CHECK(contains(page, "\nweft_http_request_seconds_bucket" + route + ",le=\"+Inf\"} 3\n"));
  std::ostringstream json;
  metrics::write_json(json);
  CHECK(contains(json.str(), R"({"labels":{"server":"shop","route":"GET /users/{id}"},"times":{)"
                             R"("count":3,)"));
}

FIBER_TEST_CASE(
    "metrics distinguish HTTP servers of the same name by numbers, and omit a destroyed server") {
  const auto handler = [](http::Request&, http::Response& response) { (void)response.send("x"); };
  const HttpServer first(handler);
  {
    const HttpServer second(handler);
    ask_and_wait(second, "/");
    const std::string page = prometheus_page();
    CHECK(contains(page, "\nweft_http_accepted_total{server=\"http\"} 0\n"));
    CHECK(contains(page, "\nweft_http_accepted_total{server=\"http\",number=\"2\"} 1\n"));
  }
  CHECK_FALSE(contains(prometheus_page(), "number=\"2\""));
}

// A memory goal refuses spawns with the same error.
FIBER_TEST_CASE_WITH(
    "a connection for which no fiber may be spawned gets 503 and appears in the metrics",
    {.workers = {1}, .options = {.max_fibers = 1}}) {
  const auto handler = [](http::Request&, http::Response& response) { (void)response.send("x"); };
  HttpServer server(handler, {.limits = {.idle = kNever}});
  net::TcpStream served = server.connect();
  CHECK(ask_once(served, kGet).status == 200);
  {
    Event go_on;
    WaitGroup waiting;
    CHECK_THROWS_AS(for (;;) waiting.go([&] { go_on.wait(); }), std::system_error);
    net::TcpStream refused = server.connect();
    std::string text = receive_all(refused);
    const Answer answer = take_answer(text);
    CHECK(answer.status == 503);
    CHECK(answer.has("Retry-After: 1"));
    CHECK(server.server().stats().turned_away == 1);
    go_on.set();
    waiting.wait();
  }
  net::TcpStream later = server.connect();
  CHECK(ask_once(later, kGet).status == 200);
}

FIBER_TEST_CASE("the metrics show the statistics of a named net::Server") {
  const net::Server nameless([](net::TcpStream&) {});
  const net::Server named([](net::TcpStream&) {}, {.name = "mail"});
  const std::string page = prometheus_page();
  CHECK(contains(page, "\nweft_server_accepted_total{server=\"mail\"} 0\n"));
  CHECK(contains(page,
                 "\n# TYPE weft_server_connections_count gauge\n"
                 "weft_server_connections_count{server=\"mail\"} 0\n"
                 "# HELP "));
}

FIBER_TEST_CASE("slow_clients(), the live page and dumps list slow clients and long requests") {
  http::Router router;
  Event called;
  Event may_end;
  router.post("/in/{id}", [](http::Request& request, http::Response& response) {
    (void)response.send(request.read_all().value);
  });
  router.get("/long", [&](http::Request&, http::Response& response) {
    called.set();
    may_end.wait();
    (void)response.send("x");
  });
  HttpServer server(router);
  trace::start();
  net::TcpStream slow = server.connect();
  send_text(slow, "POST /in/7 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  net::TcpStream waits = server.connect();
  send_text(waits, "GET /long HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  called.wait();
  while (server.server().slow_clients().empty()) this_fiber::yield();
  const auto clients = server.server().slow_clients();
  CHECK(clients.size() == 1);
  CHECK(clients.at(0).peer == slow.local_address().value);
  CHECK(clients.at(0).route == "POST /in/{id}");
  CHECK(clients.at(0).state == http::RequestState::reading_body);
  CHECK(clients.at(0).waiting <= clients.at(0).age);
  const std::string lines = live::answer("/requests").body;
  const auto from = [](net::TcpStream& stream) { return stream.local_address().value.to_string(); };
  CHECK(contains(lines, "POST /in/7; from " + from(slow) + "; route POST /in/{id}; reading body"));
  CHECK(contains(lines, "GET /long; from " + from(waits) + "; route GET /long; handling; fiber "));
  CHECK(contains(live::answer("/data.json").body, R"("route":"GET /long","state":"handling")"));
  CHECK(contains(live::answer("/fibers.json").body,
                 R"("request":"GET /long from )" + from(waits) + ", handling, "));
  std::ostringstream dump;
  dump_fibers(dump);
  CHECK(contains(dump.str(), "; GET /long from " + from(waits) + ", handling, "));
  trace::stop();
  std::ostringstream recorded;
  trace::write(recorded);
  CHECK(contains(recorded.str(), R"("request":"GET /long from )" + from(waits) + ", handling, "));
  may_end.set();
  CHECK(receive_all(waits).starts_with("HTTP/1.1 200"));
  slow.close();
}

TEST_SUITE_END();

}  // namespace
