#include "http/http_date.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

namespace weft::http {

namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::string digits(int number, std::size_t count) {
  std::string text = std::to_string(number);
  if (text.size() < count) text.insert(0, count - text.size(), '0');
  return text;
}

// False unless all of `text` is digits.
bool read_number(std::string_view text, int& number) noexcept {
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return false;
  }
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
}

}  // namespace

std::string format_http_date(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::string text(kDays[static_cast<std::size_t>(parts.tm_wday)]);
  text.append(", ").append(digits(parts.tm_mday, 2)).append(" ");
  text.append(kMonths[static_cast<std::size_t>(parts.tm_mon)]).append(" ");
  text.append(digits(parts.tm_year + 1900, 4)).append(" ").append(digits(parts.tm_hour, 2));
  text.append(":").append(digits(parts.tm_min, 2)).append(":").append(digits(parts.tm_sec, 2));
  return text.append(" GMT");
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  // "Sun, 06 Nov 1994 08:49:37 GMT"
  if (text.size() != 29 || text.substr(3, 2) != ", " || !text.ends_with(" GMT")) return {};
  const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  std::tm parts{};
  if (month == kMonths.end() || !read_number(text.substr(5, 2), parts.tm_mday) ||
      !read_number(text.substr(12, 4), parts.tm_year) ||
      !read_number(text.substr(17, 2), parts.tm_hour) ||
      !read_number(text.substr(20, 2), parts.tm_min) ||
      !read_number(text.substr(23, 2), parts.tm_sec)) {
    return {};
  }
  parts.tm_mon = static_cast<int>(month - kMonths.begin());
  parts.tm_year -= 1900;
  const std::int64_t seconds = ::timegm(&parts);
  // A day that is none, or the wrong one, is not what was written.
  if (format_http_date(seconds) != text) return {};
  return seconds;
}

}  // namespace weft::http
