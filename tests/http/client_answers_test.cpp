// Tests irregular answers that have only one interpretation.
#include <string>
#include <utility>
#include <vector>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>

#include "tests/support/http_script.hpp"
#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("http/client_answers");

FIBER_TEST_CASE("a client accepts equal Content-Length headers of a response as a single header") {
  const std::string begin = "HTTP/1.1 200 OK\r\nA: b\r\n";
  const std::string end = "C: d\r\n\r\nok";
  Script script({begin + "Content-Length: 2\r\ncontent-length:2\r\n" + end + "|" + begin +
                 "Content-Length: 2, 2\r\n" + end + "|" + begin +
                 "Content-Length: 2\t,2 ,2\r\nX: y\r\nContent-Length: 2\r\n" + end});
  http::Client client;
  for (const std::size_t count : {3U, 3U, 4U}) {
    auto [reply, error] = client.get(script.url());
    CHECK_FALSE(error);
    CHECK(reply.headers().size() == count);
    CHECK(reply.header("content-length") == "2");
    CHECK(reply.header("c") == "d");
    CHECK(reply.content_length() == 2);
    CHECK(reply.read_all().value == "ok");
  }
  CHECK(client.stats().connections == 1);
  script.join();
}

FIBER_TEST_CASE("a client refuses a response with different Content-Length headers") {
  const std::vector<std::string> lengths = {"2\r\nContent-Length: 3",
                                            "2, 3",
                                            "2, 02",
                                            "2,",
                                            ",2",
                                            "2, ,2",
                                            "",
                                            "2\r\nContent-Length:",
                                            "2\r\n 2",
                                            "+2, +2",
                                            "2;2",
                                            "2, 2\r\nTransfer-Encoding: chunked"};
  std::vector<std::string> answers;
  for (const std::string& length : lengths) {
    answers.push_back("HTTP/1.1 200 OK\r\nContent-Length: " + length + "\r\n\r\nok");
  }
  Script script(answers);
  http::Client client;
  for (const std::string& length : lengths) {
    CHECK(std::pair(length, client.get(script.url()).error) ==
          std::pair(length, http::make_error_code(http::Errc::malformed_length)));
  }
  script.join();
}

FIBER_TEST_CASE("a client joins the lines of a header that continues on the next line") {
  Script script(
      {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\t\r\nContent-Length:\r\n 2\r\n\r\nok|" + kGood});
  http::Client client;
  auto [reply, error] = client.get(script.url());
  CHECK_FALSE(error);
  CHECK(reply.headers().size() == 2);
  CHECK(reply.header("x") == "a   b");
  CHECK(reply.read_all().value == "ok");
  CHECK(client.get(script.url()).value.read_all().value == "ok");
  CHECK(client.stats().connections == 1);
  script.join();
}

FIBER_TEST_CASE("a client refuses a header name that continues on the next line") {
  Script script({"HTTP/1.1 200 OK\r\nX\r\n : a\r\n\r\n", "HTTP/1.1 200 OK\r\n \r\n\r\n"});
  http::Client client;
  CHECK(client.get(script.url()).error == http::Errc::malformed_header);
  CHECK(client.get(script.url()).error == http::Errc::malformed_line);
  script.join();
}

FIBER_TEST_CASE("a client handles an HTTP/1.2 or later response as HTTP/1.1") {
  const std::string good = kGood.substr(8);
  Script script({"HTTP/1.2" + good + "|HTTP/1.9" + good + "|" + kGood});
  http::Client client;
  for (int i = 0; i < 3; ++i) CHECK(client.get(script.url()).value.read_all().value == "ok");
  CHECK(client.stats().connections == 1);
  script.join();
}

FIBER_TEST_CASE(
    "a client joins a continuation line to the preceding trailer, and refuses the line if no "
    "trailer precedes it") {
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
  Script script({chunked + "Note: one\r\n\ttwo\r\nSum: 5\r\n\r\n", chunked + " Note: one\r\n\r\n"});
  http::Client client;
  auto folded = client.get(script.url()).value;
  CHECK(folded.read_all().value == "ok");
  CHECK(folded.trailers().size() == 2);
  CHECK(folded.trailers()[0].value == "one  \ttwo");
  CHECK(folded.trailers()[1].value == "5");
  auto lost = client.get(script.url()).value;
  CHECK(lost.read_all().error == http::Errc::malformed_trailer);
  script.join();
}

FIBER_TEST_CASE("a client refuses responses with more headers or trailers than the option allows") {
  const auto answer = [](int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += "N" + std::to_string(i) + ": v\r\n";
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + lines + "\r\n2\r\nok\r\n0\r\n" +
           lines + "\r\n";
  };
  Script script({answer(127), answer(128), answer(999), answer(999), answer(3)});
  http::Client plain;
  auto most = plain.get(script.url()).value;
  CHECK(most.headers().size() == 128);
  CHECK(most.read_all().value == "ok");
  CHECK(plain.get(script.url()).error == http::Errc::head_too_large);
  http::Client wide({.headers = 1000});
  auto many = wide.get(script.url()).value;
  CHECK(many.headers().size() == 1000);
  CHECK(many.header("n998") == "v");
  CHECK(many.read_all().value == "ok");
  CHECK(many.trailers().size() == 999);
  http::Client narrow({.headers = 999});
  CHECK(narrow.get(script.url()).error == http::Errc::head_too_large);
  http::Client strict({.headers = 3});
  CHECK(strict.get(script.url()).error == http::Errc::head_too_large);
  script.join();
  CHECK_THROWS_AS(http::Client({.headers = 0}), std::invalid_argument);
}

TEST_SUITE_END();

}  // namespace
