#include "tests/http/corpus.hpp"
#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

http::ServerOptions small_limits() {
  http::ServerOptions options;
  options.limits.head_bytes = 2048;
  options.limits.target_bytes = 512;
  options.limits.headers = 20;
  options.limits.body_bytes = 1000;
  return options;
}

void read_and_answer(http::Request& request, http::Response& response) {
  if (request.read_all().error) return;
  CHECK(response.send("ok\n"));
}

std::string readable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, 300)) {
    if (byte >= 0x20 && byte < 0x7f) {
      text += byte;
    } else {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto value = static_cast<unsigned char>(byte);
      text += {'\\', 'x', kDigits[value / 16], kDigits[value % 16]};
    }
  }
  return text;
}

std::string describe(const std::vector<Answer>& answers) {
  std::string text;
  for (const Answer& answer : answers) text += std::to_string(answer.status) + " ";
  return text;
}

void check_case(const CorpusCase& wanted, const std::vector<Answer>& answers) {
  bool right = answers.size() == wanted.statuses.size();
  for (std::size_t i = 0; right && i < answers.size(); ++i) {
    right = answers[i].status == wanted.statuses[i] &&
            (answers[i].status < 400 || answers[i].has("Connection: close"));
  }
  if (right) return;
  const std::string message = "requests.table:" + std::to_string(wanted.line) + ": " +
                              readable(wanted.bytes) + " was answered with " + describe(answers);
  FAIL_CHECK(message);
}

TEST_SUITE_BEGIN("http/corpus");

TEST_CASE("the HTTP corpus has at least 300 invalid requests") {
  std::size_t refused = 0;
  for (const CorpusCase& one : read_corpus()) refused += one.statuses.back() >= 400 ? 1 : 0;
  MESSAGE(refused << " requests to refuse");
  CHECK(refused >= 300);
}

FIBER_TEST_CASE("a server sends the expected responses to each request in the HTTP corpus") {
  const HttpServer server(read_and_answer, small_limits());
  for (const CorpusCase& one : read_corpus()) check_case(one, ask(server, one.bytes));
}

FIBER_TEST_CASE(
    "a server sends the expected responses to an HTTP corpus request that arrives in two parts") {
  const HttpServer server(read_and_answer, small_limits());
  for (const CorpusCase& one : read_corpus()) {
    if (one.bytes.size() < 2) continue;
    net::TcpStream stream = server.connect();
    const std::size_t half = one.bytes.size() / 2;
    send_text(stream, std::string_view(one.bytes).substr(0, half));
    detail::yield();  // The yield waits for no event, because both orders are correct.
    send_text(stream, std::string_view(one.bytes).substr(half));
    (void)stream.shutdown(net::Shutdown::write);
    std::string text = receive_all(stream);
    std::vector<Answer> answers;
    while (!text.empty()) {
      answers.push_back(take_answer(text));
      if (answers.back().status == 0) break;
      if (answers.back().status == 100) answers.pop_back();
    }
    check_case(one, answers);
  }
}

TEST_SUITE_END();

}  // namespace
