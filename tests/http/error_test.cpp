#include <weft/http/error.hpp>

#include <set>
#include <string>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("http/error");

TEST_CASE("each HTTP error code has its own message, and an error about a limit names the limit") {
  const auto message_of = [](http::Errc code) { return http::make_error_code(code).message(); };
  std::set<std::string> messages;
  for (int code = 1; code <= static_cast<int>(http::Errc::unsupported_form); ++code) {
    const std::string message = message_of(static_cast<http::Errc>(code));
    CAPTURE(code);
    CHECK(message.find("unknown weft-http") == std::string::npos);
    CHECK(message.find(' ') != std::string::npos);
    CHECK(messages.insert(message).second);
  }
  CHECK(http::error_category().message(1'000) == "unknown weft-http error");
  using enum http::Errc;
  CHECK(message_of(body_too_large).find("Limits::body_bytes") != std::string::npos);
  CHECK(message_of(head_too_large).find("Limits::head_bytes") != std::string::npos);
  CHECK(message_of(too_many_redirects).find("ClientOptions::max_redirects") != std::string::npos);
}

TEST_CASE("ErrorKind::malformed matches the codes of malformed messages and no other errors") {
  CHECK(http::make_error_code(http::Errc::malformed_url) == http::ErrorKind::malformed);
  CHECK(http::make_error_code(http::Errc::truncated_head) == http::ErrorKind::malformed);
  CHECK(http::make_error_code(http::Errc::body_too_large) != http::ErrorKind::malformed);
  CHECK(std::make_error_code(std::errc::operation_not_permitted) != http::ErrorKind::malformed);
  CHECK(http::make_error_condition(http::ErrorKind::malformed).message().starts_with("malformed"));
  CHECK(http::kind_category().name() == std::string("weft-http-kind"));
}

TEST_SUITE_END();

}  // namespace
