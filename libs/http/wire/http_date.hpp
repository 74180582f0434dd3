// Dates as HTTP writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// "Sun, 06 Nov 1994 08:49:37 GMT", of seconds since 1970; in English, whatever the locale.
[[nodiscard]] std::string format_http_date(std::int64_t seconds);
// All three forms of RFC 9110, 5.6.7: that one, "Sunday, 06-Nov-94 08:49:37 GMT", and
// "Sun Nov  6 08:49:37 1994". Two digits mean the year with this end that is at most 50 years after
// `now`. Returns nothing for what is no date, or names the wrong day of the week.
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now);
// The same with the current time.
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text);

}  // namespace weft::http
