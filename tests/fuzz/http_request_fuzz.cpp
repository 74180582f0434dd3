// Fuzzes heads of requests: for any bytes, the parser must find the same lines however the bytes
// are split. An accepted head must obey the rules that all readers must interpret alike.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <weft/http/request.hpp>

#include "libs/http/wire/head_lines.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace {

using weft::http::HeadLines;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_within(std::string_view part, std::string_view all) {
  return part.empty() ||
         (part.data() >= all.data() && part.data() + part.size() <= all.data() + all.size());
}

void check_head(std::string_view text) {
  static weft::http::Head head;
  if (const auto fault = weft::http::parse_request_head(text, 100, head)) {
    const int status = weft::http::status_of(*fault);
    require(status >= 400 && status < 600);
    return;
  }
  unsigned hosts = 0;
  unsigned lengths = 0;
  unsigned codings = 0;
  for (const auto& [name, value] : head.headers()) {
    require(is_within(name, text) && is_within(value, text) && !name.empty());
    require(name.find_first_of(" \t\r\n:") == std::string_view::npos);
    require(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
    hosts += weft::http::equal_tokens(name, "host") ? 1 : 0;
    lengths += weft::http::equal_tokens(name, "content-length") ? 1 : 0;
    codings += weft::http::equal_tokens(name, "transfer-encoding") ? 1 : 0;
  }
  require(hosts + (head.minor_version == 0 ? 1U : 0U) >= 1 && hosts <= 1);
  require(lengths + codings <= 1);
  require(is_within(head.target, text) && !head.target.empty());
  (void)weft::http::decode_path(head.target);
  (void)weft::http::decode_query(head.target);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  HeadLines at_once;
  const auto verdict = at_once.look_at(text);
  HeadLines bit_by_bit;
  auto slow = HeadLines::Verdict::incomplete;
  for (std::size_t i = 1; i <= size && slow == HeadLines::Verdict::incomplete; ++i) {
    slow = bit_by_bit.look_at(text.substr(0, i));
  }
  require(slow == verdict);
  if (verdict == HeadLines::Verdict::complete) {
    require(at_once.size() == bit_by_bit.size() && at_once.size() <= size);
    check_head(text.substr(at_once.first_line(), at_once.size() - at_once.first_line()));
    static weft::http::Head head;
    (void)weft::http::parse_response_head(text.substr(0, at_once.size()), 100, head);
  }
  return 0;
}
