#include <weft/http/files.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <weft/http/client.hpp>
#include <weft/http/router.hpp>

#include "libs/http/wire/http_date.hpp"
#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

// Runs a server for a folder with some files. The destructor removes the folder.
class Site {
 public:
  Site() : folder_(make_folder()) {
    const std::filesystem::path root(folder_);
    std::filesystem::create_directories(root / "public" / "sub");
    put("public/index.html", "<p>");
    put("public/ten.txt", "0123456789");
    put("public/large.bin", std::string(3'000'000, 'x'));
    put("public/sub/index.html", "sub");
    put("public/.hidden", "nobody's");
    put("secret", "secret");
    std::filesystem::create_symlink("../secret", root / "public" / "link");
  }
  ~Site() { std::filesystem::remove_all(folder_); }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  [[nodiscard]] http::Router routes() const {
    http::Router router;
    router.get("/{path...}", http::serve_folder(folder(), {.cache_control = "no-cache"}));
    return router;
  }
  [[nodiscard]] std::string folder() const { return folder_ + "/public"; }

 private:
  static std::string make_folder() {
    std::string path = std::filesystem::temp_directory_path() / "weft-http-XXXXXX";
    CHECK(::mkdtemp(path.data()) != nullptr);
    return path;
  }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }

  const std::string folder_;
};

struct Case {
  std::string_view name;
  std::string_view value;
  int status;
  std::string_view body;
};
// TAG and DATE stand for the file's tag and date.
constexpr Case kCases[] = {
    {"Range", "bytes=2-4", 206, "234"},
    {"Range", "bytes=7-", 206, "789"},
    {"Range", "bytes=-3", 206, "789"},
    {"Range", "bytes=-30", 206, "0123456789"},
    {"Range", "bytes=0-99", 206, "0123456789"},
    {"Range", "bytes=9-9", 206, "9"},
    {"Range", "bytes=10-", 416, "Range Not Satisfiable\n"},
    {"Range", "bytes=-0", 416, "Range Not Satisfiable\n"},
    {"Range", "bytes=4-2", 200, "0123456789"},
    {"Range", "bytes=1-2,4-5", 200, "0123456789"},
    {"Range", "bytes=-", 200, "0123456789"},
    {"Range", "bytes=99999999999999999999-", 200, "0123456789"},
    {"Range", "lines=1-2", 200, "0123456789"},
    {"Range", "Bytes=2-4", 206, "234"},
    {"Range", "BYTES=-3", 206, "789"},
    {"Range", "bytes=, 2-4 ,", 206, "234"},
    {"If-None-Match", "TAG", 304, ""},
    {"If-None-Match", "\"a\", W/TAG", 304, ""},
    {"If-None-Match", "*", 304, ""},
    {"If-None-Match", "\"a\"", 200, "0123456789"},
    {"If-Match", "TAG", 200, "0123456789"},
    {"If-Match", "W/TAG", 412, ""},
    {"If-Match", "\"a\"", 412, ""},
    {"If-Unmodified-Since", "DATE", 200, "0123456789"},
    {"If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT", 412, ""},
    {"If-Unmodified-Since", "Sunday, 06-Nov-94 08:49:37 GMT", 412, ""},
    {"If-Unmodified-Since", "Sun Nov  6 08:49:37 1994", 412, ""},
    {"If-Unmodified-Since", "yesterday", 200, "0123456789"},
    {"If-Modified-Since", "DATE", 304, ""},
    {"If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT", 200, "0123456789"},
    {"If-Modified-Since", "yesterday", 200, "0123456789"},
};

TEST_SUITE_BEGIN("http/files");

FIBER_TEST_CASE("serve_folder() answers with a complete file, a part of the file, or an error") {
  const Site site;
  const HttpServer server(site.routes());
  http::Client client;
  const auto ask = [&](const std::string& path, const std::string& name, const std::string& value) {
    http::Call call{.url = "http://" + server.address().to_string() + path};
    if (!name.empty()) call.headers.emplace_back(name, value);
    return std::move(client.send(call).value);
  };
  auto whole = ask("/ten.txt", "", "");
  CHECK(whole.status() == 200);
  CHECK(whole.header("content-type") == "text/plain; charset=utf-8");
  CHECK(whole.header("cache-control") == "no-cache");
  CHECK(whole.header("accept-ranges") == "bytes");
  CHECK(whole.read_all().value == "0123456789");
  const std::string tag(whole.header("etag").value());
  const std::string date(whole.header("last-modified").value());

  for (const Case& each : kCases) {
    std::string value(each.value);
    if (const auto at = value.find("TAG"); at != std::string::npos) value.replace(at, 3, tag);
    if (value == "DATE") value = date;
    auto reply = ask("/ten.txt", std::string(each.name), value);
    CHECK(std::pair(each.value, reply.status()) == std::pair(each.value, each.status));
    CHECK(reply.read_all().value == each.body);
  }
  CHECK(ask("/ten.txt", "Range", "bytes=2-4").header("content-range") == "bytes 2-4/10");
  http::Call part{.url = "http://" + server.address().to_string() + "/ten.txt",
                  .headers = {{"Range", "bytes=2-4"}, {"If-Range", tag}}};
  CHECK(client.send(part).value.status() == 206);
  part.headers[1].second = "\"a\"";
  CHECK(client.send(part).value.status() == 200);
  part.headers[1].second = date;
  CHECK(client.send(part).value.status() == 206);
  // A list may continue in the next header, and a tag has priority over a date.
  part.headers = {{"If-None-Match", "\"a\""}, {"If-None-Match", tag}};
  CHECK(client.send(part).value.status() == 304);
  part.headers = {{"If-Match", tag}, {"If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"}};
  CHECK(client.send(part).value.status() == 200);
}

FIBER_TEST_CASE("serve_folder() never serves a file outside the folder") {
  const Site site;
  const HttpServer server(site.routes());
  const auto status_of = [&](const std::string& path) {
    return ask(server, "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n").at(0).status;
  };
  CHECK(status_of("/") == 200);
  CHECK(status_of("/sub/") == 200);
  CHECK(status_of("/sub") == 301);
  for (const std::string path :
       {"/nothing", "/../secret", "/%2e%2e/secret", "/sub/../../secret",
        "/sub/%2e%2e/%2e%2e/secret", "/..%2fsecret", "//etc/passwd", "/%2fetc/passwd", "/link",
        "/.hidden", "/sub/.hidden", "/ten.txt%00.html", "/ten.txt/", "/sub//../.hidden"}) {
    CHECK(std::pair(path, status_of(path)) == std::pair(path, 404));
  }
  CHECK(ask(server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").at(0).status == 405);
}

FIBER_TEST_CASE(
    "serve_folder() keeps the query when it redirects to a folder, and sends a message with each "
    "refusal") {
  const Site site;
  const HttpServer server(site.routes());
  const auto answer_to = [&](std::string_view line) {
    return ask(server, std::string(line) + " HTTP/1.1\r\nHost: a\r\n\r\n").at(0);
  };
  CHECK(answer_to("GET /sub?x=1&y").has("Location: /sub/?x=1&y"));
  CHECK(answer_to("GET /sub").has("Location: /sub/"));
  CHECK(answer_to("GET /nothing").has("Content-Type: text/plain"));
  for (const std::string_view line : {"POST /sub", "POST /ten.txt"}) {
    CHECK(answer_to(line).status == 405);
    CHECK(answer_to(line).has("Allow: GET, HEAD"));
  }
}

FIBER_TEST_CASE(
    "serve_folder() serves the same files with any route parameter name, and without a route") {
  const Site site;
  http::Router router;
  router.get("/static/{file...}", http::serve_folder(site.folder()))
      .get("/{user}/{all...}", http::serve_folder(site.folder()));
  for (const auto& [handler, prefix] : {std::pair<http::Handler, std::string>(router, "/static"),
                                        {router, "/someone"},
                                        {http::serve_folder(site.folder()), ""}}) {
    const HttpServer server(handler);
    for (const auto& [path, body] : {std::pair("/ten.txt", "0123456789"),
                                     {"/sub/", "sub"},
                                     {"/", "<p>"},
                                     {"/nothing", "Not Found\n"},
                                     {"/sub/%2e%2e/%2e%2e/secret", "Not Found\n"}}) {
      const std::string request = "GET " + prefix + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
      CHECK(ask(server, request).at(0).body == body);
    }
  }
}

FIBER_TEST_CASE(
    "serve_folder() sends a large file completely, with the file's size in the response head") {
  const Site site;
  const HttpServer server(site.routes());
  http::Client client;
  const std::string url = "http://" + server.address().to_string() + "/large.bin";
  for (int i = 0; i < 2; ++i) {  // Also on the same connection.
    CHECK(client.get(url).value.read_all().value == std::string(3'000'000, 'x'));
  }
  CHECK(client.send({.method = "HEAD", .url = url}).value.content_length() == 3'000'000);
  CHECK(client.stats().connections == 1);
}

TEST_CASE("a date in the current HTTP format is parsed, and an invalid date is refused") {
  CHECK(http::format_http_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
  for (const std::int64_t time : {0L, 951'782'400L, 1'700'000'000L, 4'102'444'800L}) {
    CHECK(http::parse_http_date(http::format_http_date(time)) == time);
  }
  for (const char* text : {"", "Mon, 06 Nov 1994 08:49:37 GMT", "Sun, 31 Feb 1999 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:3x GMT",
                           "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
                           "Monday, 06-Nov-94 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT",
                           "Sunday, 06 Nov 1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
                           "Sun Nov  6 08:49:37 1994 GMT", "Sun Nov 31 08:49:37 1994"}) {
    CAPTURE(text);
    CHECK_FALSE(http::parse_http_date(text));
  }
}

TEST_CASE("a date in one of the two obsolete HTTP formats is parsed") {
  constexpr std::int64_t kNow = 1'700'000'000;  // In 2023.
  const auto parse = [](std::string_view text) { return http::parse_http_date(text, kNow); };
  CHECK(parse("Sunday, 06-Nov-94 08:49:37 GMT") == 784111777);
  CHECK(parse("Sun Nov  6 08:49:37 1994") == 784111777);
  CHECK(parse("Wed Nov 16 08:49:37 1994") == 784975777);
  // A year of two digits is at most 50 years in the future.
  CHECK(parse("Sunday, 31-Dec-73 00:00:00 GMT") ==
        http::parse_http_date("Sun, 31 Dec 2073 00:00:00 GMT"));
  CHECK(parse("Tuesday, 01-Jan-74 00:00:00 GMT") == 126'230'400);
  CHECK(parse("Wednesday, 01-Jan-20 00:00:00 GMT") == 1'577'836'800);
  CHECK(parse("Sat, 31 Dec 2016 23:59:60 GMT") == 1'483'228'800);  // A leap second.
}

TEST_SUITE_END();

}  // namespace
