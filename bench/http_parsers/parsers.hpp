// Declares the input of the compared parsers, and their results.
#pragma once

#include <string_view>

namespace weft::bench {

// Each function parses `request` `times` times into views of its target, names and values. It
// returns the total number of views, or 0 after an error.
unsigned parse_with_llhttp(std::string_view request, long times);
unsigned parse_with_http_parser(std::string_view request, long times);
unsigned parse_with_beast(std::string_view request, long times);

struct Views {
  std::string_view views[64];
  unsigned count = 0;

  void add(const char* at, std::size_t size) noexcept { views[count++] = {at, size}; }
};

}  // namespace weft::bench
