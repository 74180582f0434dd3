#include <http_parser.h>

#include "bench/http_parsers/parsers.hpp"

namespace weft::bench {

unsigned parse_with_http_parser(std::string_view request, long times) {
  const auto note = [](http_parser* parser, const char* at, std::size_t size) {
    static_cast<Views*>(parser->data)->add(at, size);
    return 0;
  };
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_url = note;
  settings.on_header_field = note;
  settings.on_header_value = note;
  unsigned sum = 0;
  Views views;
  for (long i = 0; i < times; ++i) {
    http_parser parser;
    http_parser_init(&parser, HTTP_REQUEST);
    views.count = 0;
    parser.data = &views;
    const auto parsed = http_parser_execute(&parser, &settings, request.data(), request.size());
    if (parsed != request.size()) return 0;
    sum += views.count;
  }
  return sum;
}

}  // namespace weft::bench
