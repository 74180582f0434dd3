#include "libs/http/wire/http_date.hpp"

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

// The parts of a date as text.
struct Parts {
  std::string_view weekday;
  std::string_view day;
  std::string_view month;
  std::string_view year;
  std::string_view time;  // "08:49:37"
};

// Splits a date into parts. The text's length and punctuation show which of the three forms it has.
std::optional<Parts> split(std::string_view text) noexcept {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) {
    // "Sun Nov  6 08:49:37 1994"
    if (text.size() != 24 || text[3] != ' ' || text[7] != ' ' || text[10] != ' ' ||
        text[19] != ' ') {
      return {};
    }
    const bool one_digit = text[8] == ' ';
    return Parts{text.substr(0, 3), text.substr(one_digit ? 9 : 8, one_digit ? 1 : 2),
                 text.substr(4, 3), text.substr(20), text.substr(11, 8)};
  }
  const std::string_view rest = text.substr(comma + 1);
  if (!rest.ends_with(" GMT") || !rest.starts_with(' ')) return {};
  if (comma == 3 && rest.size() == 25 && rest[3] == ' ' && rest[7] == ' ' && rest[12] == ' ') {
    // "Sun, 06 Nov 1994 08:49:37 GMT"
    return Parts{text.substr(0, 3), rest.substr(1, 2), rest.substr(4, 3), rest.substr(8, 4),
                 rest.substr(13, 8)};
  }
  // "Sunday, 06-Nov-94 08:49:37 GMT"
  if (rest.size() != 23 || rest[3] != '-' || rest[7] != '-' || rest[10] != ' ') return {};
  return Parts{text.substr(0, comma), rest.substr(1, 2), rest.substr(4, 3), rest.substr(8, 2),
               rest.substr(11, 8)};
}

// Parses a number. Returns false unless `text` consists of digits and the number is between `least`
// and `most`.
bool read_number(std::string_view text, int least, int most, int& number) noexcept {
  const bool is_number = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  }) && std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
  return is_number && number >= least && number <= most;
}

bool read_time(std::string_view text, std::tm& parts) noexcept {
  return text[2] == ':' && text[5] == ':' && read_number(text.substr(0, 2), 0, 23, parts.tm_hour) &&
         read_number(text.substr(3, 2), 0, 59, parts.tm_min) &&
         read_number(text.substr(6, 2), 0, 60, parts.tm_sec);  // 60 is a leap second.
}

bool is_weekday(std::string_view text, int weekday) noexcept {
  constexpr std::array<std::string_view, 7> kRests = {"day",   "day", "sday", "nesday",
                                                      "rsday", "day", "urday"};
  const auto index = static_cast<std::size_t>(weekday);
  const std::string_view name = kDays.at(index);
  return text.starts_with(name) && (text.size() == 3 || text.substr(3) == kRests.at(index));
}

int year_of(std::int64_t seconds) noexcept {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return parts.tm_year + 1900;
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

std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now) {
  const auto words = split(text);
  if (!words) return {};
  const bool is_short = words->weekday.size() == 3;
  if (is_short != (words->year.size() == 4)) return {};
  const auto month = std::find(kMonths.begin(), kMonths.end(), words->month);
  std::tm parts{};
  int year = 0;
  if (month == kMonths.end() || !read_number(words->day, 1, 31, parts.tm_mday) ||
      !read_number(words->year, 0, 9999, year) || !read_time(words->time, parts)) {
    return {};
  }
  if (!is_short) {
    const int latest = year_of(now) + 50;
    year += latest - latest % 100;
    if (year > latest) year -= 100;
  }
  parts.tm_mon = static_cast<int>(month - kMonths.begin());
  parts.tm_year = year - 1900;
  const bool is_leap_second = parts.tm_sec == 60;
  if (is_leap_second) parts.tm_sec = 59;
  const int day = parts.tm_mday;
  const std::int64_t seconds = ::timegm(&parts);
  // If the month has no such day, timegm() has changed the day.
  if (parts.tm_mday != day || !is_weekday(words->weekday, parts.tm_wday)) return {};
  return seconds + (is_leap_second ? 1 : 0);
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  return parse_http_date(text, static_cast<std::int64_t>(std::time(nullptr)));
}

}  // namespace weft::http
