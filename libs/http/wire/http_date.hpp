// Formats and parses HTTP dates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// Returns a string such as "Sun, 06 Nov 1994 08:49:37 GMT" for seconds since 1970. The string is
// always in English.
[[nodiscard]] std::string format_http_date(std::int64_t seconds);
// Parses the three forms of RFC 9110, 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT",
// "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6 08:49:37 1994". A two-digit year stands for the
// latest matching year that is at most 50 years after `now`. Returns nothing if the text is not a
// date, or the weekday is wrong.
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now);
// Parses a date, with the current time as `now`.
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text);

}  // namespace weft::http
