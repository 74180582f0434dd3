// Fuzzes values of headers that the server parses: lists, qualities, dates.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>
#include <weft/http/header.hpp>

#include "libs/http/coding/accept_encoding.hpp"
#include "libs/http/wire/http_date.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_within(std::string_view part, std::string_view all) {
  return part.data() >= all.data() && part.data() + part.size() <= all.data() + all.size();
}

void check_list(std::string_view list) {
  std::string_view rest = list;
  std::string_view item;
  while (weft::http::next_item(rest, item)) {
    require(!item.empty() && is_within(item, list) && item.find(',') == std::string_view::npos);
    require(weft::http::list_has(list, item));
    std::string_view name;
    const int quality = weft::http::quality_of(item, name);
    require(quality >= 0 && quality <= 1000);
    require(item.starts_with(name) || name.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<weft::http::Header> headers;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    check_list(line);
    if (const auto date = weft::http::parse_http_date(line)) {
      require(weft::http::format_http_date(*date).size() == 29);
    }
    headers.push_back({"Accept-Encoding", line});
    begin = end + 1;
  }
  (void)weft::http::accepts_gzip(headers);
  // A coding that is refused by name stays refused, whatever else is allowed.
  headers.push_back({"Accept-Encoding", "gzip;q=0"});
  require(!weft::http::accepts_gzip(headers));
  headers.push_back({"accept-encoding", "gzip, identity;q=0"});
  require(weft::http::accepts_gzip(headers));
  return 0;
}
