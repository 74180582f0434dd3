#include <weft/http/live_page.hpp>
#include <weft/this_fiber.hpp>
#include <weft/trace.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Returns the answer to a request on a separate connection.
std::string ask(const HttpServer& server, const std::string& method, const std::string& path,
                const std::string& host) {
  net::TcpStream stream = server.connect();
  send_text(stream,
            method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  return receive_all(stream);
}

// Serves the page in a separate server, until close().
class Page {
 public:
  Page() : listener_(net::TcpListener::listen(net::Address::loopback_v4(0)).value) {
    serving_ = spawn([this] { return http::serve_live_page(listener_); });
  }
  ~Page() {
    listener_.close();
    CHECK(serving_.join());
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  [[nodiscard]] net::TcpStream connect() const {
    return net::TcpStream::connect(listener_.local_address().value).value;
  }
  [[nodiscard]] std::string ask(const std::string& line, const std::string& host) const {
    net::TcpStream stream = connect();
    send_text(stream, line + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    return receive_all(stream);
  }

 private:
  net::TcpListener listener_;
  JoinHandle<net::Result<void>> serving_;
};

TEST_SUITE_BEGIN("http/live_page");

FIBER_TEST_CASE(
    "a live page can be a route of a server, and answers only requests from the same machine") {
  http::Router router;
  router.get("/", [](http::Request&, http::Response& response) { (void)response.send("other"); });
  http::mount_live_page(router, "/debug/weft");
  const HttpServer server(router);
  const std::string page = ask(server, "GET", "/debug/weft/", "localhost");
  CHECK(page.starts_with("HTTP/1.1 200 "));
  CHECK(contains(page, "\r\nContent-Type: text/html; charset=utf-8\r\n"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(contains(ask(server, "GET", "/debug/weft/metrics", "127.0.0.1:80"),
                 "\n# TYPE weft_workers_count gauge\n"));
  CHECK(contains(ask(server, "GET", "/debug/weft/data.json", "[::1]"), R"({"metrics":{)"));
  CHECK(contains(ask(server, "GET", "/debug/weft/trace?seconds=0.001", "localhost"),
                 "\r\nContent-Type: application/json\r\n"));
  CHECK(
      ask(server, "GET", "/debug/weft/trace?seconds=0", "localhost").starts_with("HTTP/1.1 400 "));
  CHECK(ask(server, "GET", "/debug/weft/none", "localhost").starts_with("HTTP/1.1 404 "));
  CHECK(ask(server, "POST", "/debug/weft/", "localhost").starts_with("HTTP/1.1 405 "));
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example"}) {
    const std::string answer = ask(server, "GET", "/debug/weft/data.json", host);
    CHECK_MESSAGE(answer.starts_with("HTTP/1.1 403 "), host);
  }
  CHECK(contains(ask(server, "GET", "/", "evil.example"), "other"));
}

FIBER_TEST_CASE("a live page without access limits is served under any host name") {
  http::Router router;
  http::mount_live_page(router, "/weft", live::Readers::everybody);
  const HttpServer server(router);
  CHECK(ask(server, "GET", "/weft/fibers", "example.org").starts_with("HTTP/1.1 200 "));
}

FIBER_TEST_CASE(
    "a live page server without other routes is read-only and accepts only local host names") {
  const Page page;
  const std::string good = page.ask("GET /metrics?x", "localhost:1");
  CHECK(good.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(contains(good, "\r\n\r\n# HELP weft_workers_count "));
  CHECK(page.ask("GET /", "[::1]:80").ends_with("</html>\n"));
  CHECK(page.ask("HEAD /", "127.0.0.1").ends_with("\r\n\r\n"));
  CHECK(page.ask("POST /", "localhost").starts_with("HTTP/1.1 405 "));
  CHECK(page.ask("GET /", "evil.example").starts_with("HTTP/1.1 403 "));
  CHECK(page.ask("GET /none", "localhost").starts_with("HTTP/1.1 404 "));
}

FIBER_TEST_CASE(
    "recording a trace does not delay other pages, and ends when the client disconnects") {
  const Page page;
  {
    net::TcpStream stream = page.connect();
    send_text(stream, "GET /trace?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while (!trace::is_on()) this_fiber::yield();
    CHECK(page.ask("GET /trace", "localhost").starts_with("HTTP/1.1 409 Conflict\r\n"));
    CHECK(page.ask("GET /fibers", "localhost").starts_with("HTTP/1.1 200 OK\r\n"));
  }
  while (trace::is_on()) this_fiber::yield();
  const std::string whole = page.ask("GET /trace?seconds=0.001", "localhost");
  CHECK(whole.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(whole.ends_with("]}"));
}

TEST_SUITE_END();

}  // namespace
