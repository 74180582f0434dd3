#include <weft/live_page.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/context.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>
#include <weft/trace.hpp>

#include "tests/support/fiber_test.hpp"

using weft::live::may_read;
using weft::live::Readers;
using weft::net::Address;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Sends each client `answer`, whatever its request is.
void answer_with(weft::net::TcpListener& listener, const std::string& answer) {
  (void)weft::net::serve(listener, [&](weft::net::TcpStream& stream) {
    std::string request;
    while (!contains(request, "\r\n\r\n")) {
      std::array<char, 4096> buffer{};
      const auto [count, end] = stream.read_some(std::as_writable_bytes(std::span(buffer)));
      if (end || count == 0) return;
      request.append(buffer.data(), count);
    }
    (void)stream.write_all(std::as_bytes(std::span(answer)));
  });
}

// Returns the output of `weft-top --once` for a page, and its exit status.
std::pair<std::string, int> run_weft_top(const Address& address) {
  const std::string command =
      "no_proxy='*' " WEFT_TOOLS "/weft-top --once http://" + address.to_string() + " 2>&1";
  return weft::blocking([&] {
    std::FILE* const output = ::popen(command.c_str(), "r");  // NOLINT: no user has a say in it.
    std::string text;
    std::array<char, 4096> buffer{};
    while (output != nullptr && std::fgets(buffer.data(), buffer.size(), output) != nullptr) {
      text.append(buffer.data());
    }
    return std::pair(text, output == nullptr ? -1 : ::pclose(output));
  });
}

}  // namespace

TEST_SUITE_BEGIN("observe/live_page");

FIBER_TEST_CASE("the live page answers each of its paths, and other paths get 404") {
  weft::FiberPool pool({.capacity = 1, .name = "mail"});
  weft::Event event;
  for (int i = 0; i < 3; ++i) weft::go([&] { event.wait(); });
  const std::string page = weft::live::answer("/").body;
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(contains(weft::live::answer("/metrics").body, "weft_pool_capacity{pool=\"mail\"} 1\n"));
  CHECK(weft::live::answer("/data.json").body.starts_with(R"({"metrics":{"runtimes":[{"number":)"));
  while (!contains(weft::live::answer("/fibers").body, "3 parked: event")) {
    weft::this_fiber::yield();
  }
  CHECK(contains(weft::live::answer("/stacks").body, "[event] "));
  CHECK(contains(weft::live::answer("/fibers.json").body, R"("reason":"event")"));
  CHECK(weft::live::answer("/../etc/passwd").status == 404);
  CHECK(weft::live::answer("").status == 404);
  event.set();
}

FIBER_TEST_CASE("names in the live page's list of fibers have no terminal control characters") {
  weft::Event event;
  auto fiber = weft::spawn({.name = "red\x1b[31m\n"}, [&] { event.wait(); });
  while (!contains(weft::live::answer("/fibers").body, "; 'red?[31m?' for one")) {
    weft::this_fiber::yield();
  }
  event.set();
  fiber.join();
}

FIBER_TEST_CASE_WITH("weft-top shows the pools and waits of a program", {.workers = {2}}) {
  weft::FiberPool pool({.capacity = 3, .name = "mail"});
  const weft::FiberPool same({.capacity = 4, .name = "mail"});
  auto [listener, refused] = weft::net::TcpListener::listen(Address::loopback_v4(0));
  REQUIRE(!refused);
  const std::string answer = "HTTP/1.1 200 OK\r\n\r\n" + weft::live::answer("/data.json").body;
  auto serving = weft::spawn([&listener = listener, &answer] { answer_with(listener, answer); });
  const auto [shown, status] = run_weft_top(listener.local_address().value);
  const std::string& text = shown;  // For the message of a failure.
  CHECK_MESSAGE(status == 0, text);
  CHECK(contains(text, "waiting for "));
  CHECK(contains(text, "mail (2)"));
  CHECK(contains(text, "what they run, and where they were spawned"));
  listener.close();
  serving.join();
}

FIBER_TEST_CASE_WITH("weft-top reports an invalid response from the live page", {.workers = {2}}) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "\x1b[31m no HTTP\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n{\"of\":\"somebody else\"}", "HTTP/1.1 200 OK\r\n\r\n[1]",
        "HTTP/1.1 200 OK\r\n\r\n{\"metrics\":{\"runtimes\":[{}]}}", "HTTP/1.1 200 OK\r\n\r\nno"}) {
    auto [listener, refused] = weft::net::TcpListener::listen(Address::loopback_v4(0));
    REQUIRE(!refused);
    auto serving = weft::spawn([&listener = listener, answer] { answer_with(listener, answer); });
    const auto [shown, status] = run_weft_top(listener.local_address().value);
    const std::string& text = shown;
    CHECK_MESSAGE(status != 0, text);
    CHECK_MESSAGE(text.starts_with("weft-top: http://127.0.0.1:"), text);
    CHECK_MESSAGE(std::ranges::count(text, '\n') == 1, text);
    CHECK(!contains(text, "\x1b"));
    listener.close();
    serving.join();
  }
}

FIBER_TEST_CASE("the live page records a trace for the number of seconds in the query") {
  const weft::live::Answer answer = weft::live::answer("/trace?seconds=0.002");
  CHECK(answer.status == 200);
  CHECK(answer.content_type == "application/json");
  CHECK(answer.body.starts_with(R"({"displayTimeUnit":"ns")"));
  CHECK(contains(answer.body, R"("name":"worker )"));
  CHECK(contains(answer.body, R"("then":"parked: sleep")"));
  CHECK(!weft::trace::is_on());
  for (const char* query : {"0", "61", "-1", "nan", "1s", "1e9", "x"}) {
    CAPTURE(query);
    CHECK(weft::live::answer(std::string("/trace?a=b&seconds=") + query).status == 400);
  }
}

FIBER_TEST_CASE("the live page refuses a second trace, and the end of a context ends a trace") {
  weft::Context context;
  auto first = weft::spawn([&] {
    const weft::ContextScope scope(context);
    return weft::live::answer("/trace?seconds=60").status;
  });
  while (!weft::trace::is_on()) weft::this_fiber::yield();
  const weft::live::Answer second = weft::live::answer("/trace");
  CHECK(second.status == 409);
  CHECK(contains(second.body, "another trace is being recorded"));
  context.cancel();
  CHECK(first.join() == 503);
  CHECK(!weft::trace::is_on());
}

TEST_CASE("the live page answers only requests from the same machine by default") {
  const Address here = Address::loopback_v4(1);
  const Address there = Address::parse("192.0.2.1:5").value;
  CHECK(may_read(Readers::this_machine, here, "127.0.0.1:6470"));
  CHECK(may_read(Readers::this_machine, Address::loopback_v6(1), "[::1]"));
  CHECK(may_read(Readers::this_machine, here, ""));
  CHECK(may_read(Readers::this_machine, here, "localhost"));
  CHECK(may_read(Readers::this_machine, here, "localhost:6470"));
  CHECK(may_read(Readers::this_machine, here, "127.1.2.3"));
  CHECK(may_read(Readers::this_machine, here, "[::ffff:127.0.0.1]:80"));
  for (const char* name :
       {"localhost.evil.example", "localhost:80@evil.example", "127.0.0.1.evil.example",
        "127.evil.example:6470", "127.0.0.1:80@evil.example", "[::1].evil.example",
        "[::1]:80.evil.example", "[::ffff:127.evil.example]", "0.0.0.0", "192.0.2.1", "[::2]",
        ":"}) {
    CAPTURE(name);
    CHECK(!may_read(Readers::this_machine, here, name));
  }
  CHECK(!may_read(Readers::this_machine, there, "127.0.0.1"));
  CHECK(may_read(Readers::everybody, there, "evil.example"));
}

TEST_SUITE_END();
