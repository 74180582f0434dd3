#include <llhttp.h>

#include "bench/http_parsers/parsers.hpp"

namespace weft::bench {

unsigned parse_with_llhttp(std::string_view request, long times) {
  const auto note = [](llhttp_t* parser, const char* at, std::size_t size) {
    static_cast<Views*>(parser->data)->add(at, size);
    return 0;
  };
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
  settings.on_url = note;
  settings.on_header_field = note;
  settings.on_header_value = note;
  unsigned sum = 0;
  Views views;
  for (long i = 0; i < times; ++i) {
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    views.count = 0;
    parser.data = &views;
    if (llhttp_execute(&parser, request.data(), request.size()) != HPE_OK) return 0;
    sum += views.count;
  }
  return sum;
}

}  // namespace weft::bench
