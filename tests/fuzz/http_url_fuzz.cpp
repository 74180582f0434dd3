// Fuzzes URLs, references and dates. An accepted text must fit into a request unchanged, and a
// second parse must give the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <weft/http/url.hpp>

#include "libs/http/wire/http_date.hpp"

namespace {

using weft::http::Url;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_url(const Url& url) {
  require(url.scheme == "http" || url.scheme == "https");
  require(!url.host.empty() && url.port != 0 && url.target.starts_with('/'));
  for (const char c : url.host + url.target) require(c > 0x20 && c < 0x7f && c != '#');
  require(url.host.find_first_of("/?@\\") == std::string::npos);
  const auto again = Url::parse(url.to_string());
  require(!again.error && again.value == url);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = Url::parse(text);
  if (!whole.error) check_url(whole.value);
  const std::size_t cut = text.find('\n');
  if (cut != std::string_view::npos) {
    const auto base = Url::parse(text.substr(0, cut));
    if (!base.error) {
      const auto target = base.value.resolve(text.substr(cut + 1));
      if (!target.error) check_url(target.value);
    }
  }
  if (const auto date = weft::http::parse_http_date(text)) {
    require(weft::http::format_http_date(*date) == text);
  }
  return 0;
}
