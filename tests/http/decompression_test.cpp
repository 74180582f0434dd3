// Tests a client that decompresses answers.
#include <zlib.h>

#include <array>
#include <string>
#include <string_view>
#include <weft/http/client.hpp>
#include <weft/http/compression.hpp>
#include <weft/http/error.hpp>
#include <weft/http/forward.hpp>
#include <weft/http/router.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

std::string gzipped(std::string_view text) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string all(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(all.data());
  stream.avail_out = static_cast<uInt>(all.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  all.resize(all.size() - stream.avail_out);
  (void)deflateEnd(&stream);
  return all;
}

// Runs a server whose answers claim that their bytes are compressed.
class CodedServer {
 public:
  explicit CodedServer(const std::string& body, int status = 200)
      : server_([body, status](http::Request& request, http::Response& response) {
          response.set_status(status);
          response.add_header("ETag", "\"1\"");
          response.add_header("Repr-Digest", "sha-256=:AA==:");
          response.add_header("Content-Encoding", request.query().empty() ? "gzip" : "gzip, gzip");
          if (request.path() == "/pieces") {
            for (const char byte : body) (void)response.write({&byte, 1});
          } else {
            (void)response.send(body);
          }
        }) {}
  [[nodiscard]] std::string url(std::string_view target) const {
    return "http://" + server_.address().to_string() + std::string(target);
  }

 private:
  HttpServer server_;
};

TEST_SUITE_BEGIN("http/decompression");

FIBER_TEST_CASE("a client decompresses a response that arrives in one piece or in several pieces") {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * i) + ' ';
  for (const std::string& body :
       {gzipped(text), gzipped(text.substr(0, 5)) + gzipped("") + gzipped(text.substr(5))}) {
    const CodedServer server(body);
    http::Client client({.decompress = true});
    for (const std::string_view target : {"/", "/pieces"}) {
      auto [reply, error] = client.get(server.url(target));
      CHECK(!error);
      CHECK_FALSE(reply.content_length().has_value());
      CHECK(reply.header("Content-Encoding") == "gzip");
      CHECK(reply.read_all().value == text);
      std::array<std::byte, 1> more;
      CHECK(reply.read_some(more).error == weft::Errc::end_of_stream);
    }
    CHECK(client.stats().reused == 1);
    http::Client plain;
    CHECK(plain.get(server.url("/")).value.read_all().value == body);
    // Bodies that are not compressed once by gzip, and partial contents, are returned unchanged.
    CHECK(client.get(server.url("/?twice")).value.read_all().value == body);
    const CodedServer part(body, 206);
    CHECK(client.get(part.url("/")).value.read_all().value == body);
  }
  const CodedServer empty("");
  http::Client client({.decompress = true});
  CHECK(client.get(empty.url("/")).value.read_all().value.empty());
}

FIBER_TEST_CASE(
    "a client returns an error for a compressed response that is malformed or too large") {
  const std::string whole = gzipped(std::string(100'000, 'x'));
  http::Client client({.body_bytes = 50'000, .decompress = true});
  CHECK(client.get(CodedServer(whole).url("/")).value.read_all().error ==
        http::Errc::body_too_large);
  const auto error_of = [&](const std::string& body) {
    const CodedServer server(body);
    auto reply = client.get(server.url("/")).value;
    const std::error_code error = reply.read_all().error;
    std::array<std::byte, 1> more;
    CHECK(reply.read_some(more).error == error);
    return error;
  };
  const std::string text = gzipped("some text that is compressed");
  CHECK(error_of(text.substr(0, text.size() - 4)) == http::Errc::unexpected_end);
  CHECK(error_of(text.substr(0, 3)) == http::Errc::unexpected_end);
  CHECK(error_of("this is no gzip") == http::Errc::malformed_coding);
  CHECK(error_of(text + "rubbish") == http::Errc::malformed_coding);
  std::string wrong = text;
  wrong.at(wrong.size() - 6) = static_cast<char>(wrong.at(wrong.size() - 6) ^ 1);  // The checksum.
  CHECK(error_of(wrong) == http::Errc::malformed_coding);
}

FIBER_TEST_CASE("a client requests compression unless the caller sets Accept-Encoding or Range") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    (void)response.send(request.header("Accept-Encoding").value_or("none"));
  });
  const std::string url = "http://" + server.address().to_string() + "/";
  const auto asked = [&](http::Client& client, const http::Call& call) {
    return client.send(call).value.read_all().value;
  };
  http::Client client({.decompress = true});
  http::Client plain;
  CHECK(asked(client, {.url = url}) == "gzip");
  CHECK(asked(plain, {.url = url}) == "none");
  CHECK(asked(client, {.url = url, .headers = {{"accept-encoding", "br"}}}) == "br");
  CHECK(asked(client, {.url = url, .headers = {{"Range", "bytes=0-1"}}}) == "none");
  // A server of this library compresses the answer.
  const std::string text(10'000, 't');
  http::ServerOptions options;
  options.compression = http::Compression{};
  const HttpServer compressing(
      [&text](http::Request&, http::Response& response) {
        response.add_header("Content-Type", "text/plain");
        (void)response.send(text);
      },
      options);
  auto reply = client.get("http://" + compressing.address().to_string() + "/").value;
  CHECK(reply.header("Content-Encoding") == "gzip");
  CHECK(reply.read_all().value == text);
}

FIBER_TEST_CASE(
    "a proxy omits Content-Encoding and digests when it forwards a response that its client has "
    "decompressed") {
  const std::string body = gzipped("text");
  const CodedServer origin(body);
  http::Client client({.decompress = true});
  const HttpServer proxy([&](http::Request& request, http::Response& response) {
    auto reply = client.send(http::forward_call(request, origin.url("")));
    CHECK_FALSE(reply.error);
    CHECK(reply.value.is_decompressed() == request.query().empty());
    CHECK(http::forward_reply(reply.value, response));
  });
  const std::string url = "http://" + proxy.address().to_string() + "/";
  auto text = http::Client().get(url).value;
  CHECK_FALSE(text.header("Content-Encoding"));
  CHECK(text.header("ETag") == "W/\"1\"");
  CHECK_FALSE(text.header("Repr-Digest"));
  CHECK(text.read_all().value == "text");
  auto unchanged = http::Client().get(url + "?twice").value;
  CHECK(unchanged.header("Content-Encoding") == "gzip, gzip");
  CHECK(unchanged.header("ETag") == "\"1\"");
  CHECK(unchanged.header("Repr-Digest"));
  CHECK(unchanged.read_all().value == body);
}

TEST_SUITE_END();

}  // namespace
