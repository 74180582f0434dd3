// Tests the W3C Trace Context, from a client through a server to another server.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <weft/http/client.hpp>
#include <weft/http/trace_context.hpp>
#include <weft/http/url.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

using http::TraceContext;

TEST_SUITE_BEGIN("http/trace_context");

TEST_CASE("a traceparent header is parsed as the W3C specifies and written in the same form") {
  const std::string given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto parsed = TraceContext::parse(given);
  REQUIRE(parsed);
  CHECK(parsed->trace_id[0] == 0x4b);
  CHECK(parsed->span_id[7] == 0xb7);
  CHECK(parsed->is_sampled);
  CHECK(parsed->to_string() == given);
  // A later version may have more fields; unknown flags are dropped.
  const auto later = TraceContext::parse("cc" + given.substr(2, 51) + "08-more");
  REQUIRE(later);
  CHECK(later->to_string() == given.substr(0, 53) + "00");
  const std::string zeros(32, '0');
  const std::string_view ids = std::string_view(given).substr(2);
  for (const std::string& wrong :
       {std::string(), given.substr(0, 54), given + "-more", "ff" + std::string(ids),
        "cc" + std::string(ids) + "more", "00-" + zeros + given.substr(35),
        given.substr(0, 36) + zeros.substr(16) + "-01", "00-4BF9" + given.substr(7),
        given.substr(0, 35) + "_" + given.substr(36), given.substr(0, 53) + "0g"}) {
    CAPTURE(wrong);
    CHECK_FALSE(TraceContext::parse(wrong));
  }
}

TEST_CASE("a child TraceContext has the same trace id and a new span id") {
  const TraceContext root = TraceContext::make();
  const TraceContext child = root.child();
  CHECK(TraceContext::parse(child.to_string()) == child);
  CHECK(child.trace_id == root.trace_id);
  CHECK(child.span_id != root.span_id);
  CHECK(TraceContext::make().trace_id != root.trace_id);
}

FIBER_TEST_CASE("a trace context is passed with the request context from one server to the next") {
  std::optional<TraceContext> parent;
  const HttpServer back(
      [&](http::Request& request, http::Response&) { parent = http::received_trace(request); });
  std::optional<TraceContext> span;
  const HttpServer front([&](http::Request& request, http::Response& response) {
    CHECK(http::current_trace() == nullptr);
    const auto received = http::received_trace(request);
    span = received ? received->child() : TraceContext::make();
    request.context().set(http::trace_key(), *span);
    // Nested calls inherit the context.
    with_timeout(std::chrono::hours(1), [&] {
      http::Call call{.url = "http://" + back.address().to_string() + "/"};
      http::add_trace(call);
      http::add_trace(call);
      CHECK(call.headers.size() == 1U + (span->tracestate.empty() ? 0U : 1U));
      const auto [reply, error] = http::Client().send(call);
      response.set_status(error ? 502 : reply.status());
    });
  });
  const auto ask_with = [&](const std::string& headers) {
    net::TcpStream stream = front.connect();
    CHECK(ask_once(stream, "GET / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n").status == 200);
    CHECK(parent == span);
  };
  const std::string given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
  ask_with("traceparent: " + given + "\r\ntracestate: a=1\r\ntracestate: b=2\r\n");
  CHECK(parent->trace_id == TraceContext::parse(given)->trace_id);
  CHECK(parent->to_string() != given);
  CHECK(parent->tracestate == "a=1,b=2");
  // Without a valid parent, the handler's span is the root.
  ask_with("tracestate: a=1\r\n");
  CHECK(parent->tracestate.empty());
  ask_with("traceparent: " + given + "\r\ntraceparent: " + given + "\r\n");
  CHECK(parent->trace_id != TraceContext::parse(given)->trace_id);
}

TEST_SUITE_END();

}  // namespace
