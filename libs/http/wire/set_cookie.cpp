#include "libs/http/wire/set_cookie.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <weft/http/header.hpp>

#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/list_items.hpp"

namespace weft::http {

namespace {

constexpr std::int64_t kMostSeconds = std::int64_t{400} * 24 * 60 * 60;
constexpr std::size_t kMaxAttributeBytes = 1024;

// Returns whether the character separates the parts of a date.
bool is_date_delimiter(char c) noexcept {
  return c == '\t' || (c >= 0x20 && c <= 0x2f) || (c >= 0x3b && c <= 0x40) ||
         (c >= 0x5b && c <= 0x60) || (c >= 0x7b && c <= 0x7e);
}

// Takes `least` to `most` digits from the front of `text`. Returns false if the text begins with
// fewer or more digits.
bool take_digits(std::string_view& text, std::size_t least, std::size_t most, int& number) {
  std::size_t count = 0;
  number = 0;
  while (count < text.size() && count <= most && is_digit(text[count])) {
    number = number * 10 + (text[count++] - '0');
  }
  text.remove_prefix(count);
  return count >= least && count <= most;
}

bool read_clock(std::string_view word, std::tm& parts) noexcept {
  const auto colon = [&word] {
    if (!word.starts_with(':')) return false;
    word.remove_prefix(1);
    return true;
  };
  return take_digits(word, 1, 2, parts.tm_hour) && colon() &&
         take_digits(word, 1, 2, parts.tm_min) && colon() && take_digits(word, 1, 2, parts.tm_sec);
}

bool read_month(std::string_view word, int& month) noexcept {
  constexpr std::array<std::string_view, 12> kNames = {"jan", "feb", "mar", "apr", "may", "jun",
                                                       "jul", "aug", "sep", "oct", "nov", "dec"};
  const auto found = std::find_if(kNames.begin(), kNames.end(), [word](std::string_view name) {
    return equal_tokens(word.substr(0, 3), name);
  });
  month = static_cast<int>(found - kNames.begin());
  return found != kNames.end();
}

// The parts of a date that have been found; they may appear in any order.
struct Found {
  std::tm parts{};
  bool time = false;
  bool day = false;
  bool month = false;
  bool year = false;

  void add(std::string_view word) noexcept {
    std::string_view rest = word;
    int number = 0;
    if (!time && read_clock(word, parts)) {
      time = true;
    } else if (!day && take_digits(rest = word, 1, 2, number)) {
      day = true;
      parts.tm_mday = number;
    } else if (!month && read_month(word, number)) {
      month = true;
      parts.tm_mon = number;
    } else if (!year && take_digits(rest = word, 2, 4, number)) {
      year = true;
      parts.tm_year = number;
    }
  }
};

// Parses Max-Age, a number of any size. Returns nothing if the text is malformed; the caller then
// ignores the attribute.
std::optional<std::int64_t> parse_max_age(std::string_view text) noexcept {
  const bool is_negative = text.starts_with('-');
  const std::string_view digits = is_negative ? text.substr(1) : text;
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return {};
  if (is_negative) return 0;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  return error == std::errc() ? std::min(seconds, kMostSeconds) : kMostSeconds;
}

// Reads the attributes of a cookie from `rest`.
void read_attributes(std::string_view rest, std::int64_t now, SetCookie& cookie) {
  std::optional<std::int64_t> max_age;
  while (!rest.empty()) {
    const std::string_view part = take_part(rest);
    const std::size_t equals = part.find('=');
    const std::string_view name = trimmed(part.substr(0, equals));
    std::string_view value;
    if (equals != std::string_view::npos) value = trimmed(part.substr(equals + 1));
    if (value.size() > kMaxAttributeBytes) continue;
    if (equal_tokens(name, "domain")) {
      if (value.starts_with('.')) value.remove_prefix(1);
      cookie.domain = value;
      std::transform(value.begin(), value.end(), cookie.domain.begin(), to_lower);
    } else if (equal_tokens(name, "path")) {
      cookie.path = value.starts_with('/') ? value : std::string_view();
    } else if (equal_tokens(name, "secure")) {
      cookie.secure = true;
    } else if (equal_tokens(name, "max-age")) {
      if (const auto seconds = parse_max_age(value)) max_age = seconds;
    } else if (equal_tokens(name, "expires")) {
      if (const auto date = parse_cookie_date(value)) {
        cookie.lifetime = std::min(*date - now, kMostSeconds);
      }
    }
  }
  if (max_age) cookie.lifetime = max_age;  // Max-Age takes precedence over Expires.
}

}  // namespace

std::optional<std::int64_t> parse_cookie_date(std::string_view text) noexcept {
  Found found;
  while (!text.empty()) {
    const auto end = std::find_if(text.begin(), text.end(), is_date_delimiter);
    const auto size = static_cast<std::size_t>(end - text.begin());
    found.add(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  std::tm& parts = found.parts;
  if (!found.time || !found.day || !found.month || !found.year) return {};
  if (parts.tm_year < 70) parts.tm_year += 2000;
  if (parts.tm_year < 100) parts.tm_year += 1900;
  const int day = parts.tm_mday;
  if (day < 1 || day > 31 || parts.tm_year < 1601 || parts.tm_hour > 23 || parts.tm_min > 59 ||
      parts.tm_sec > 59) {
    return {};
  }
  parts.tm_year -= 1900;
  const std::int64_t seconds = ::timegm(&parts);
  if (parts.tm_mday != day) return {};  // The month has no such day.
  return seconds;
}

bool keeps_prefix(std::string_view name, bool secure, bool host_and_root) noexcept {
  constexpr std::string_view kSecure = "__secure-";
  constexpr std::string_view kHost = "__host-";
  if (equal_tokens(name.substr(0, kSecure.size()), kSecure)) return secure;
  if (equal_tokens(name.substr(0, kHost.size()), kHost)) return secure && host_and_root;
  return true;
}

std::optional<SetCookie> parse_set_cookie(std::string_view text, std::int64_t now) {
  if (!std::all_of(text.begin(), text.end(), is_value_char)) return {};
  const std::string_view pair = take_part(text);
  const std::size_t equals = pair.find('=');
  SetCookie cookie;
  if (equals != std::string_view::npos) cookie.name = trimmed(pair.substr(0, equals));
  cookie.value = trimmed(equals == std::string_view::npos ? pair : pair.substr(equals + 1));
  const std::size_t size = cookie.name.size() + cookie.value.size();
  if (size == 0 || size > kMaxCookieBytes) return {};
  // The value of a cookie without a name must not begin with "__Secure-" or "__Host-", because a
  // server could mistake the value for a name.
  if (cookie.name.empty() && !keeps_prefix(cookie.value, false, false)) return {};
  read_attributes(text, now, cookie);
  return cookie;
}

}  // namespace weft::http
