#include <weft/http/form.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

constexpr std::string_view kType = "multipart/form-data; boundary=xY";

// Returns a body of which each read returns at most `step` bytes.
http::Multipart::Source source_of(std::string_view text, std::size_t step) {
  return [text, step](std::span<std::byte> buffer) mutable -> net::Result<std::size_t> {
    if (text.empty()) return {.error = Errc::end_of_stream};
    const std::size_t count = std::min({step, text.size(), buffer.size()});
    std::copy_n(reinterpret_cast<const std::byte*>(text.data()), count, buffer.data());
    text.remove_prefix(count);
    return {.value = count};
  };
}

// Returns all parts as "name(file)type=text;", and the error after them.
std::pair<std::string, std::error_code> read_parts(std::string_view text, std::size_t step,
                                                   const http::MultipartLimits& limits = {}) {
  http::Multipart form(kType, source_of(text, step), limits);
  std::string all;
  while (form.next()) {
    const std::string head =
        form.name() + "(" + form.filename().value_or("-") + ")" + std::string(form.content_type());
    all += head + "=" + form.read_all().value + ";";
  }
  return {all, form.next()};
}

std::string part(const std::string& name, const std::string& text) {
  return "--xY\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + text + "\r\n";
}

TEST_SUITE_BEGIN("http/form");

TEST_CASE("a URL-encoded form is parsed only if it does not exceed the limits") {
  const auto [fields, error] = http::parse_form("a=1&&b=x+y%21&c&=d&a=%zz");
  CHECK_FALSE(error);
  std::string all;
  for (const auto& [name, value] : fields) all += name + ":" + value + ";";
  CHECK(all == "a:1;b:x y!;c:;:d;a:%zz;");
  CHECK(http::parse_form("a&b&c", {.fields = 2}).error == http::Errc::form_too_large);
  CHECK(http::parse_form("abc", {.bytes = 2}).error == http::Errc::form_too_large);
}

TEST_CASE("a multipart form is parsed correctly when its bytes arrive in pieces of any size") {
  const std::string text =
      "preamble\r\n--xY \r\n"
      "content-disposition: form-data; filename=\"C:\\a\\\"b.txt\"; name=f\r\n"
      "Content-Type: text/csv\r\n\r\n"
      "\r\n--x\r\n--Xy\r\r\n-\r\n\r\n" +
      part("empty", "") +
      "--xY\r\nContent-Disposition: form-data; name=none\r\n\r\n"  // The line break is missing:
      "--xY\r\nContent-Disposition: form-data; name=\"\"\r\n\r\nz\r\n--xY--epilogue\r\n--xY";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    const auto [parts, error] = read_parts(text, step);
    CHECK(parts ==
          "f(C:\\a\"b.txt)text/csv=\r\n--x\r\n--Xy\r\r\n-\r\n;empty(-)text/plain=;"
          "none(-)text/plain=;(-)text/plain=z;");
    CHECK(error == Errc::end_of_stream);
  }
}

TEST_CASE("each read of a malformed or unsupported multipart form returns the same error") {
  const std::string head = "--xY\r\nContent-Disposition: form-data; name=a";
  for (const std::string& text :
       {std::string(), std::string("--xZ--"), std::string("x--xY--"), std::string("--xY"),
        part("a", "1"), std::string("--xYz\r\n\r\n"), std::string("--xY\r\n\r\nno name\r\n--xY--"),
        head + "; name=b\r\n\r\n\r\n--xY--", head + "; name=\"b\r\n\r\n\r\n--xY--",
        head + "\n\r\n\r\n\r\n--xY--", head + "\r\n continued\r\n\r\n\r\n--xY--",
        head + "\r\nContent-Disposition: form-data; name=b\r\n\r\n\r\n--xY--"}) {
    CAPTURE(text);
    for (const std::size_t step : {1UL, 1000UL}) {
      CHECK(read_parts(text, step).second == http::Errc::malformed_form);
    }
  }
  for (const char* type :
       {"", "text/plain", "multipart/form-data", "multipart/form-data; boundary=",
        "multipart/form-data; boundary=a; boundary=b", "multipart/mixed; boundary=a"}) {
    http::Multipart form(type, source_of("--a--", 5));
    CHECK(form.next() == http::Errc::unsupported_form);
    CHECK(form.read_all().error == http::Errc::unsupported_form);
  }
}

TEST_CASE("a multipart form that exceeds one of its limits returns an error") {
  const std::string text = part("a", "12345") + part("b", std::string(20'000, 'x')) + "--xY--";
  CHECK(read_parts(text, 100).second == Errc::end_of_stream);
  using http::Errc::form_too_large;
  CHECK(read_parts(text, 100, {.parts = 1}) ==
        std::pair(std::string("a(-)text/plain=12345;"), http::make_error_code(form_too_large)));
  CHECK(read_parts(text, 100, {.header_bytes = 40}).second == form_too_large);
  CHECK(read_parts(text, 100, {.part_bytes = 19'999}).second == form_too_large);
  CHECK(read_parts(text, 100, {.part_bytes = 20'000}).second == Errc::end_of_stream);
  CHECK(read_parts(text, 100, {.total_bytes = text.size() - 1}).second == form_too_large);
  CHECK(read_parts(text, 100, {.total_bytes = text.size()}).second == Errc::end_of_stream);
  http::Multipart form(kType, source_of(text, 100));
  CHECK(form.next());
  CHECK(form.read_all(4).error == form_too_large);
  CHECK(form.next() == form_too_large);
}

FIBER_TEST_CASE(
    "a server stores an uploaded file and reads the form fields before and after the file") {
  std::string folder = (std::filesystem::temp_directory_path() / "weft-form-XXXXXX").string();
  CHECK(::mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/file";
  const HttpServer server([&path](http::Request& request, http::Response& response) {
    std::string all;
    if (const auto fields = http::read_form(request); !fields.error) {
      for (const auto& [name, value] : fields.value) all += name + "=" + value + ";";
      (void)response.send(all);
      return;
    }
    http::Multipart form(request);
    while (form.next()) {
      all += form.name() + "=";
      all += form.filename() ? std::to_string(form.save_to(path).value) : form.read_all().value;
      all += ";";
    }
    (void)response.send(all + form.next().error.message());
  });
  const std::string big(200'000, 'x');
  const std::string body =
      part("a", "1") + "--xY\r\nContent-Disposition: form-data; name=f; filename=\"../x\"\r\n\r\n" +
      big + "\r\n" + part("b", "2") + "--xY--\r\n";
  const auto post = [&server](const std::string& type, const std::string& text) {
    return ask(server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: " + type +
                           "\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text)
        .at(0)
        .body;
  };
  const std::string end = make_error_code(Errc::end_of_stream).message();
  CHECK(post(std::string(kType), body) == "a=1;f=200000;b=2;" + end);
  CHECK((files::read_file(path).value == big));
  CHECK(post(std::string(kType), body) ==
        "a=1;f=0;" + std::make_error_code(std::errc::file_exists).message());
  CHECK(post("application/x-www-form-urlencoded; charset=utf-8", "a=1&b=2") == "a=1;b=2;");
  std::filesystem::remove_all(folder);
}

TEST_SUITE_END();

}  // namespace
