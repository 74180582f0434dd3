#include <weft/http/cookie.hpp>

#include <algorithm>
#include <stdexcept>

#include "libs/http/wire/head_rules.hpp"
#include "libs/http/wire/list_items.hpp"
#include "libs/http/wire/printable.hpp"
#include "libs/http/wire/set_cookie.hpp"

namespace weft::http {

namespace {

void require(bool holds, const char* what, std::string_view value, const char* rule) {
  if (holds) return;
  throw std::invalid_argument(std::string("weft::http::Cookie: ")
                                  .append(what)
                                  .append(" = '")
                                  .append(printable(value))
                                  .append("'; ")
                                  .append(rule));
}

bool is_cookie_value(std::string_view value) noexcept {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return std::all_of(value.begin(), value.end(), [](char c) {
    return c > 0x20 && c < 0x7f && c != '"' && c != ',' && c != ';' && c != '\\';
  });
}

bool is_attribute(std::string_view value) noexcept {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= 0x20 && c < 0x7f && c != ';'; });
}

void check(const Cookie& cookie) {
  require(is_token(cookie.name), "name", cookie.name, "must be a token");
  require(is_cookie_value(cookie.value), "value", cookie.value,
          "must be visible ASCII without quotes, commas, semicolons and backslashes; code it");
  require(cookie.name.size() + cookie.value.size() <= kMaxCookieBytes, "name", cookie.name,
          "must have at most 4096 bytes together with the value");
  require(is_attribute(cookie.path) && (cookie.path.empty() || cookie.path[0] == '/'), "path",
          cookie.path, "must begin with a slash, and have no semicolon or control character");
  require(is_attribute(cookie.domain), "domain", cookie.domain,
          "must have no semicolon or control character");
  require(cookie.secure || !(cookie.partitioned || cookie.same_site == SameSite::none), "name",
          cookie.name, "must be `secure`, as it is `partitioned` or SameSite::none");
  require(keeps_prefix(cookie.name, cookie.secure, cookie.domain.empty() && cookie.path == "/"),
          "name", cookie.name,
          "must be `secure`, and with __Host- have the path '/' and no domain");
}

// Calls `visit` with each name and value until a call returns true.
template <class Visit>
void visit_cookies(const Request& request, const Visit& visit) {
  for (const Header& header : request.headers()) {
    if (!equal_tokens(header.name, "cookie")) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const std::string_view pair = take_part(rest);
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos) continue;  // The pair has no name.
      if (visit(CookieView{trimmed(pair.substr(0, equals)), trimmed(pair.substr(equals + 1))})) {
        return;
      }
    }
  }
}

}  // namespace

std::string to_set_cookie(const Cookie& cookie) {
  check(cookie);
  std::string line = cookie.name + "=" + cookie.value;
  if (!cookie.path.empty()) line += "; Path=" + cookie.path;
  if (!cookie.domain.empty()) line += "; Domain=" + cookie.domain;
  if (cookie.max_age) line += "; Max-Age=" + std::to_string(cookie.max_age->count());
  if (cookie.secure) line += "; Secure";
  if (cookie.http_only) line += "; HttpOnly";
  switch (cookie.same_site) {
    case SameSite::unset:
      break;
    case SameSite::strict:
      line += "; SameSite=Strict";
      break;
    case SameSite::lax:
      line += "; SameSite=Lax";
      break;
    case SameSite::none:
      line += "; SameSite=None";
      break;
  }
  if (cookie.partitioned) line += "; Partitioned";
  return line;
}

void add_cookie(Response& response, const Cookie& cookie) {
  response.add_header("Set-Cookie", to_set_cookie(cookie));
}

std::vector<CookieView> cookies(const Request& request) {
  std::vector<CookieView> all;
  visit_cookies(request, [&all](const CookieView& each) {
    all.push_back(each);
    return false;
  });
  return all;
}

std::optional<std::string_view> cookie(const Request& request, std::string_view name) noexcept {
  std::optional<std::string_view> found;
  visit_cookies(request, [&](const CookieView& each) {
    if (each.name != name) return false;
    found = each.value;
    return true;
  });
  return found;
}

}  // namespace weft::http
