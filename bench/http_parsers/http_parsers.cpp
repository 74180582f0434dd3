// Measures the time that maintained HTTP parsers spend on a request's head, for
// docs/decisions/0007-the-http-parser.md.
//
//   http_parsers llhttp small 1000      under valgrind --tool=callgrind, and once more with another
//                                       number: the difference is what the parsing costs
#include <cstdio>
#include <cstdlib>

#include "bench/http_parsers/parsers.hpp"

namespace weft::bench {
namespace {

constexpr std::string_view kSmall = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
constexpr std::string_view kBrowser =
    "GET /articles/2024/fibers?page=2 HTTP/1.1\r\n"
    "Host: www.example.org\r\n"
    "Connection: keep-alive\r\n"
    "sec-ch-ua: \"Chromium\";v=\"118\", \"Not=A?Brand\";v=\"99\"\r\n"
    "sec-ch-ua-mobile: ?0\r\n"
    "sec-ch-ua-platform: \"Linux\"\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/118.0.0.0 Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,"
    "*/*;q=0.8\r\n"
    "Sec-Fetch-Site: none\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-User: ?1\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; consent=yes\r\n\r\n";

unsigned parse(std::string_view parser, std::string_view request, long times) {
  if (parser == "llhttp") return parse_with_llhttp(request, times);
  if (parser == "http_parser") return parse_with_http_parser(request, times);
  return parser == "beast" ? parse_with_beast(request, times) : 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (argc != 4) {
    std::fprintf(stderr, "http_parsers llhttp|http_parser|beast small|browser TIMES\n");
    return EXIT_FAILURE;
  }
  const auto request = std::string_view(argv[2]) == "small" ? kSmall : kBrowser;
  const unsigned views = parse(argv[1], request, std::atol(argv[3]));
  std::printf("%u views\n", views);
  return views > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
