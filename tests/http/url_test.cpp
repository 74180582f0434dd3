#include <weft/http/url.hpp>

#include <string>
#include <string_view>
#include <weft/http/error.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("http/url");

TEST_CASE("a URL is parsed and formatted canonically") {
  struct Case {
    std::string_view text;
    std::string_view whole;  // Empty: parse() must refuse it.
  };
  constexpr Case kCases[] = {
      {"http://a", "http://a/"},
      {"HTTP://Example.ORG:80/A?b=C#d", "http://example.org/A?b=C"},
      {"https://a:443", "https://a/"},
      {"https://a:8443?x", "https://a:8443/?x"},
      {"http://a:/b", "http://a/b"},
      {"http://[::1]:81/", "http://[::1]:81/"},
      {"http://127.0.0.1:8080/%20?a%0d", "http://127.0.0.1:8080/%20?a%0d"},
      {"http://a#b", "http://a/"},
      {"http://[FE80::1%25Eth0]:81/", "http://[fe80::1%25Eth0]:81/"},
      {"http://[::1%lo]/", "http://[::1%25lo]/"},
      {"http://a:00080/", "http://a/"},
      {"", ""},
      {"a/b", ""},
      {"//a/b", ""},
      {"http:/a", ""},
      {"http://", ""},
      {"http:///a", ""},
      {"ftp://a", ""},
      {"http://u:p@a/", ""},
      {"http://a:0/", ""},
      {"http://a:65536/", ""},
      {"http://a:8o/", ""},
      {"http://a:-1/", ""},
      {"http://a b/", ""},
      {"http://a/b c", ""},
      {"http://a/\r\nHost: b", ""},
      {"http://a\r\n/", ""},
      {"http://a/\x7f", ""},
      {"http://a/\xc3\xa4", ""},
      {"http://[::1/", ""},
      {"http://[a]/", ""},
      {"http://[a:b]/", ""},
      {"http://[1:2]/", ""},
      {"http://[::1%]/", ""},
      {"http://[::1%a/b]/", ""},
      {"http://[v1.a]/", ""},
      {"http://[V1.a:b]/", ""},
      {"http://a:00/", ""},
      {"http://a:99999999999/", ""},
      {"http://a%41/", ""},
      {"http://[::1]x/", ""},
      {"http://a\\b/", ""},
  };
  for (const Case& each : kCases) {
    CAPTURE(each.text);
    const auto [url, error] = http::Url::parse(each.text);
    CHECK((error ? std::string() : url.to_string()) == each.whole);
    // Parsing the text of a URL returns an equal URL.
    if (!error) CHECK(http::Url::parse(url.to_string()).value == url);
  }
  CHECK(http::Url::parse("ftp://a").error == http::Errc::unsupported);
  CHECK(http::Url::parse("http://a b").error == http::Errc::malformed_url);
}

TEST_CASE("a Host header omits the zone of an IPv6 address") {
  CHECK(http::Url::parse("http://[fe80::1%25eth0]:81/").value.authority() == "[fe80::1]:81");
  CHECK(http::Url::parse("http://[fe80::1%eth0]/").value.host == "fe80::1%eth0");
}

TEST_CASE("a URL reference is resolved as RFC 3986 specifies and encoded where needed") {
  const auto base = http::Url::parse("http://a/b/c/d;p?q").value;
  struct Case {
    std::string_view reference;
    std::string_view whole;
  };
  constexpr Case kCases[] = {
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g/"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q"},
      {"g#s", "http://a/b/c/g"},
      {";x", "http://a/b/c/;x"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g;x=1/../y", "http://a/b/c/y"},
      {"g?y/../x", "http://a/b/c/g?y/../x"},
      {"https://b:1/c", "https://b:1/c"},
      {"mailto:a", ""},
      {"javascript:x", ""},
      {"g h", "http://a/b/c/g%20h"},
      {"/caf\xc3\xa9?\xe9", "http://a/caf%C3%A9?%E9"},
      {"http://b/\xc3\xa9#\xc3", "http://b/%C3%A9"},
      {"http://\xc3\xa9/", ""},
      {"g\th", ""},
      {"//", ""},
  };
  for (const Case& each : kCases) {
    CAPTURE(each.reference);
    const auto [url, error] = base.resolve(each.reference);
    CHECK((error ? std::string() : url.to_string()) == each.whole);
  }
}

TEST_SUITE_END();

}  // namespace
