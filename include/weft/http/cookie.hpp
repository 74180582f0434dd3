// Reads the cookies of requests to a server, and sets cookies in its responses.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>

namespace weft::http {

// Specifies which requests from other sites include a cookie; with `unset`, the browser decides.
enum class SameSite : std::uint8_t { unset, strict, lax, none };

// Describes a cookie that a response sets.
// Context: plain value.
struct Cookie {
  std::string name;   // A token.
  std::string value;  // Visible ASCII without '"', ',', ';' and '\'; quotes around it are allowed.
  // The cookie is sent for this path and its subpaths. Empty: the directory of the request's path.
  std::string path = {};
  // The cookie is sent to this domain and its subdomains. Empty: only to the host that sets it.
  std::string domain = {};
  // Zero or less deletes the cookie. Empty: the cookie ends with the browser's session.
  std::optional<std::chrono::seconds> max_age = {};
  bool secure = false;     // Sent over HTTPS only.
  bool http_only = false;  // Hidden from scripts.
  SameSite same_site = SameSite::unset;
  bool partitioned = false;  // Stored separately for each top-level site.
};

// Refers to a cookie in a request.
struct CookieView {
  std::string_view name;
  std::string_view value;
};

// Returns the value of a Set-Cookie header.
// Context: any caller; does not park.
// Throws: std::bad_alloc; std::invalid_argument if the name is not a token, the value breaks the
// rules of Cookie::value, a non-empty path does not begin with '/', the path or domain contains a
// semicolon, a control or a non-ASCII character, or name and value together exceed 4096 bytes. It
// also rejects cookies that browsers drop: `none` or `partitioned` without `secure`, and names with
// the prefix __Secure- or __Host- without the attributes that the prefix requires.
[[nodiscard]] std::string to_set_cookie(const Cookie& cookie);
// Adds a Set-Cookie header, after any that earlier calls added. The response must not have begun.
// Context: the request's handler; does not park.
// Throws: whatever to_set_cookie() throws.
void add_cookie(Response& response, const Cookie& cookie);

// Returns the cookies in the order of the request's headers, as views into these headers. Values
// are neither decoded nor unquoted. Of several cookies with the same name, browsers send the cookie
// with the most specific path first. Omits cookies without a '='.
// Context: the request's handler; does not park.
// Throws: std::bad_alloc.
[[nodiscard]] std::vector<CookieView> cookies(const Request& request);
// Returns the value of the first cookie with exactly this name, if any.
// Context: the request's handler; does not park.
[[nodiscard]] std::optional<std::string_view> cookie(const Request& request,
                                                     std::string_view name) noexcept;

}  // namespace weft::http
