#include <weft/http/compression.hpp>

#include <zlib.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <weft/event.hpp>
#include <weft/http/files.hpp>

#include "libs/http/coding/accept_encoding.hpp"
#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

// Returns the text in a gzip stream, or "" if the stream is invalid.
std::string decompressed(std::string_view text) {
  z_stream stream{};
  CHECK(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  std::string all;
  int outcome = Z_OK;
  while (outcome == Z_OK) {
    std::array<char, 4096> room;
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    outcome = inflate(&stream, Z_NO_FLUSH);
    all.append(room.data(), room.size() - stream.avail_out);
    if (stream.avail_in == 0 && outcome == Z_OK && stream.avail_out > 0) break;
  }
  (void)inflateEnd(&stream);
  return outcome == Z_STREAM_END || outcome == Z_OK ? all : "";
}

// Returns the data of a chunked body.
std::string unchunked(std::string_view text) {
  std::string all;
  for (;;) {
    const std::size_t size = std::stoul(std::string(text), nullptr, 16);
    text.remove_prefix(text.find("\r\n") + 2);
    if (size == 0) return all;
    all += text.substr(0, size);
    text.remove_prefix(size + 2);
  }
}

bool accepts(std::string_view value) {
  const http::Header header{"accept-Encoding", value};
  return http::accepts_gzip(std::span(&header, 1));
}

std::string get(std::string_view path, std::string_view more = "Accept-Encoding: gzip\r\n") {
  return std::string("GET ").append(path).append(" HTTP/1.1\r\nHost: a\r\n").append(more) + "\r\n";
}

const std::string kText = [] {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "line " + std::to_string(i % 100) + "\n";
  return text;
}();

// Answers with `kText`, in the way that the path requests.
void answer(http::Request& request, http::Response& response) {
  const std::string_view path = request.path();
  response.add_header("Content-Type", path == "/png" ? "image/png" : "Text/html; charset=utf-8");
  if (path == "/tagged") response.add_header("ETag", "\"one\"");
  if (path == "/done") response.add_header("Content-Encoding", "br");
  if (path == "/fixed") response.add_header("Cache-Control", "no-transform");
  if (path == "/private") {
    response.add_header("Cache-Control", "private");
    response.add_header("cache-control", "max-age=60, No-Transform");
  }
  if (path == "/digest") response.add_header("content-digest", "sha-256=:AA==:");
  if (path == "/short") return void(response.send("short"));
  if (path != "/parts" && path != "/promised" && path != "/broken") {
    return void(response.send(kText));
  }
  if (path != "/parts") response.add_header("Content-Length", std::to_string(kText.size()));
  CHECK(response.write(std::string_view(kText).substr(0, 1000)));
  if (path == "/broken") return;
  CHECK(response.write(std::string_view(kText).substr(1000)));
}

http::ServerOptions compressing() { return {.compression = http::Compression{}}; }

TEST_SUITE_BEGIN("http/compression");

TEST_CASE("quality values in Accept-Encoding decide whether a response may be compressed") {
  CHECK(accepts("gzip"));
  CHECK(accepts("deflate, GZip;q=0.5 , br"));
  CHECK(accepts("x-gzip"));
  CHECK(accepts("*"));
  CHECK(accepts("br, *;q=0.001"));
  CHECK(accepts("gzip;q=1.000"));
  CHECK(accepts("identity;q=0.5, gzip; Q=0.5"));
  CHECK_FALSE(accepts(""));
  CHECK_FALSE(accepts("gzip;q=0"));
  CHECK_FALSE(accepts("gzip;q=0.000, *"));
  CHECK_FALSE(accepts("br"));
  CHECK_FALSE(accepts("*;q=0"));
  CHECK_FALSE(accepts("identity, gzip;q=0.9"));
  CHECK_FALSE(accepts("gzip;q=2"));
  CHECK_FALSE(accepts("gzip;q=0.1234"));
  CHECK_FALSE(accepts("gzip;q=-1"));
  CHECK_FALSE(accepts("gzip;level=9"));
  CHECK_FALSE(accepts("gzipped"));
  CHECK_FALSE(http::accepts_gzip({}));
}

FIBER_TEST_CASE("a server compresses a response only if the client accepts compression") {
  const HttpServer server(answer, compressing());
  const auto answers = ask(server, get("/") + get("/", "") + get("/", "Accept-Encoding: br\r\n"));
  CHECK(answers.size() == 3);
  CHECK(answers[0].has("Content-Encoding: gzip"));
  CHECK(answers[0].has("Vary: Accept-Encoding"));
  CHECK(answers[0].body.size() < kText.size() / 5);
  CHECK(decompressed(answers[0].body) == kText);
  for (const std::size_t i : {1U, 2U}) {
    CHECK_FALSE(answers[i].has("Content-Encoding: gzip"));
    CHECK(answers[i].has("Vary: Accept-Encoding"));
    CHECK(answers[i].body == kText);
  }
}

FIBER_TEST_CASE(
    "a server does not compress a response that is short, is already encoded, has an unlisted "
    "type, is marked no-transform, or has a digest") {
  const HttpServer server(answer, compressing());
  for (const std::string_view path : {"/short", "/png", "/done", "/fixed", "/private", "/digest"}) {
    const auto answers = ask(server, get(path));
    CHECK(answers.size() == 1);
    CHECK_FALSE(answers[0].has("Content-Encoding: gzip"));
    CHECK_FALSE(answers[0].has("Vary: Accept-Encoding"));
    CHECK(answers[0].body == (path == "/short" ? "short" : kText));
  }
}

FIBER_TEST_CASE(
    "a server compresses each part of a body when the handler writes the body in parts") {
  const HttpServer server(answer, compressing());
  for (const std::string_view path : {"/parts", "/promised"}) {
    net::TcpStream stream = server.connect();
    send_text(stream, get(path));
    const std::string head = receive_until(stream, "\r\n\r\n");
    CHECK(head.find("Content-Encoding: gzip\r\n") != std::string::npos);
    CHECK(head.find("Transfer-Encoding: chunked\r\n") != std::string::npos);
    CHECK(head.find("Content-Length") == std::string::npos);
    // The connection stays, so the last chunk is the body's end.
    CHECK(decompressed(unchunked(receive_until(stream, "\r\n0\r\n\r\n"))) == kText);
  }
}

FIBER_TEST_CASE(
    "a client can decompress each part of a compressed body before the next part is written") {
  Event read;
  const HttpServer server(
      [&](http::Request&, http::Response& response) {
        response.add_header("Content-Type", "text/plain");
        CHECK(response.write("one part"));
        read.wait();
      },
      compressing());
  net::TcpStream stream = server.connect();
  send_text(stream, get("/"));
  (void)receive_until(stream, "\r\n\r\n");
  const std::string size = receive_until(stream, "\r\n");
  std::string part(std::stoul(size, nullptr, 16), '\0');
  CHECK_FALSE(stream.read_exactly(std::as_writable_bytes(std::span(part))).error);
  CHECK(decompressed(part) == "one part");
  read.set();
  (void)receive_until(stream, "\r\n0\r\n\r\n");
}

FIBER_TEST_CASE("a compressed body that is aborted has no final chunk") {
  const HttpServer server(answer, compressing());
  net::TcpStream stream = server.connect();
  send_text(stream, get("/broken"));
  const std::string all = receive_all(stream);
  CHECK(all.find("Content-Encoding: gzip\r\n") != std::string::npos);
  CHECK_FALSE(all.ends_with("\r\n0\r\n\r\n"));
}

FIBER_TEST_CASE("HEAD returns the same headers as GET, and a compressed response has a weak ETag") {
  const HttpServer server(answer, compressing());
  const auto answers =
      ask(server, "HEAD /tagged HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n" +
                      get("/tagged") + get("/tagged", ""));
  CHECK(answers.size() == 3);
  CHECK(answers[0].has("Content-Encoding: gzip"));
  CHECK(answers[0].head.find("Content-Length") == std::string::npos);
  CHECK(answers[0].has("ETag: W/\"one\""));
  CHECK(answers[1].has("ETag: W/\"one\""));
  CHECK(decompressed(answers[1].body) == kText);
  CHECK(answers[2].has("ETag: \"one\""));
}

FIBER_TEST_CASE(
    "a response with part of a file, or without a body, has the caching headers of the complete "
    "response") {
  std::string folder = std::filesystem::temp_directory_path() / "weft-compression-XXXXXX";
  CHECK(::mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/text.html") << kText;
  std::ofstream(folder + "/short.html") << "short";
  std::ofstream(folder + "/image.png") << kText;
  {
    const HttpServer server(
        [&](http::Request& request, http::Response& response) {
          (void)http::send_file(request, response, folder + std::string(request.path()),
                                {.cache_control = "no-cache"});
        },
        compressing());
    const auto one = [&](const std::string& path, const std::string& more) {
      return ask(server, get(path, more)).at(0);
    };
    // Sends the request with this line, and without it.
    for (const std::string accept : {"Accept-Encoding: gzip\r\n", ""}) {
      const Answer whole =
          ask(server, "HEAD /text.html HTTP/1.1\r\nHost: a\r\n" + accept + "\r\n")[0];
      const auto begin = whole.head.find("ETag: ");
      const std::string tag = whole.head.substr(begin, whole.head.find("\r\n", begin) - begin);
      CHECK(whole.has("Vary: Accept-Encoding"));
      CHECK(tag.starts_with("ETag: W/") == !accept.empty());
      const Answer same = one("/text.html", accept + "If-None-Match: " + tag.substr(6) + "\r\n");
      CHECK(same.status == 304);
      CHECK(same.has("Vary: Accept-Encoding"));
      CHECK(same.has("Cache-Control: no-cache"));
      CHECK(same.has(tag));
      CHECK(same.head.find("\r\nDate: ") != std::string::npos);
      CHECK(same.head.find("Content-Type") == std::string::npos);
      CHECK(same.head.find("Content-Encoding") == std::string::npos);
      const Answer part = one("/text.html", accept + "Range: bytes=0-3\r\n");
      CHECK(part.status == 206);
      CHECK(part.body == "line");
      CHECK(part.has("Vary: Accept-Encoding"));
      CHECK_FALSE(part.has("Content-Encoding: gzip"));
      // An answer that is never compressed does not vary with the request.
      for (const std::string path : {"/short.html", "/image.png"}) {
        CHECK_FALSE(one(path, accept + "If-None-Match: *\r\n").has("Vary: Accept-Encoding"));
      }
      CHECK_FALSE(one("/image.png", accept + "Range: bytes=0-3\r\n").has("Vary: Accept-Encoding"));
    }
  }
  std::filesystem::remove_all(folder);
}

FIBER_TEST_CASE(
    "a server compresses nothing unless compression is enabled, and refuses invalid compression "
    "options") {
  const HttpServer server(answer);
  const auto answers = ask(server, get("/"));
  CHECK(answers[0].body == kText);
  CHECK_FALSE(answers[0].has("Vary: Accept-Encoding"));
  CHECK_THROWS_AS(http::Server(answer, {.compression = http::Compression{.level = 10}}),
                  std::invalid_argument);
}

TEST_SUITE_END();

}  // namespace
