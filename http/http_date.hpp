// Dates as HTTP writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// "Sun, 06 Nov 1994 08:49:37 GMT", of seconds since 1970; in English, whatever the locale.
[[nodiscard]] std::string format_http_date(std::int64_t seconds);
// Only that form. Nothing for what is none.
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text);

}  // namespace weft::http
