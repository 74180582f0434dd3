#include <weft/live_page.hpp>

#include <array>
#include <span>
#include <string>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/net/dial.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

using weft::live::may_read;
using weft::live::Readers;
using weft::net::Address;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whatever comes until the end of the connection.
std::string ask(const Address& address, const std::string& request) {
  auto [stream, error] = weft::net::TcpStream::connect(address);
  REQUIRE(!error);
  CHECK(!stream.write_all(std::as_bytes(std::span(request))).error);
  std::string text;
  for (;;) {
    std::array<char, 4096> buffer{};
    const auto [count, end] = stream.read_some(std::as_writable_bytes(std::span(buffer)));
    if (end || count == 0) return text;
    text.append(buffer.data(), count);
  }
}

}  // namespace

TEST_SUITE_BEGIN("observe/live_page");

FIBER_TEST_CASE("each page is answered, and nothing else") {
  weft::FiberPool pool({.capacity = 1, .name = "mail"});
  weft::Event event;
  for (int i = 0; i < 3; ++i) weft::go([&] { event.wait(); });
  const std::string page = weft::live::answer("/").body;
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(contains(weft::live::answer("/metrics").body, "weft_pool_capacity{pool=\"mail\"} 1\n"));
  CHECK(weft::live::answer("/data.json").body.starts_with(R"({"metrics":{"runtimes":[{"live":)"));
  while (!contains(weft::live::answer("/fibers").body, "3 parked: event")) {
    weft::this_fiber::yield();
  }
  CHECK(contains(weft::live::answer("/stacks").body, "[event] "));
  CHECK(contains(weft::live::answer("/fibers.json").body, R"("reason":"event")"));
  CHECK(weft::live::answer("/../etc/passwd").status == 404);
  CHECK(weft::live::answer("").status == 404);
  event.set();
}

FIBER_TEST_CASE("it is served over a socket, to be read, and to this machine by its address") {
  auto listening = weft::net::TcpListener::listen(Address::loopback_v4(0));
  REQUIRE(!listening.error);
  weft::net::TcpListener& listener = listening.value;
  const Address address = listener.local_address().value;
  auto serving = weft::spawn([&] { return weft::live::serve(listener); });
  const std::string good = ask(address, "GET /metrics?x HTTP/1.1\r\nHost: localhost:1\r\n\r\n");
  CHECK(good.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(contains(good, "\r\n\r\n# HELP weft_workers_count "));
  const std::string head = ask(address, "HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  CHECK(head.ends_with("\r\n\r\n"));
  CHECK(ask(address, "POST / HTTP/1.1\r\nhost: [::1]:80\r\n\r\n").starts_with("HTTP/1.1 405 "));
  CHECK(ask(address, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 403 "));
  CHECK(ask(address, "GET /none HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  CHECK(ask(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 405 "));
  CHECK(ask(address, std::string(9000, 'x')).empty());
  listener.close();
  CHECK(!serving.join());
}

TEST_CASE("only this machine reads, by an address of its own, unless told otherwise") {
  const Address here = Address::loopback_v4(1);
  const Address there = Address::parse("192.0.2.1:5").value;
  CHECK(may_read(Readers::this_machine, here, "127.0.0.1:6470"));
  CHECK(may_read(Readers::this_machine, Address::loopback_v6(1), "[::1]"));
  CHECK(may_read(Readers::this_machine, here, ""));
  CHECK(!may_read(Readers::this_machine, here, "localhost.evil.example"));
  CHECK(!may_read(Readers::this_machine, there, "127.0.0.1"));
  CHECK(may_read(Readers::everybody, there, "evil.example"));
}

TEST_SUITE_END();
