// Reads and sets cookies in the requests and answers of a server.
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

// Describes a cookie that an answer sets.
// Context: plain value.
struct Cookie {
  std::string name;   // A token.
  std::string value;  // Visible ASCII without '"', ',', ';' and '\'; quotes around it are allowed.
  // The path below which the cookie is sent. Empty: the folder of the request's path.
  std::string path = {};
  // The domain that receives the cookie. Empty: the host that sets the cookie, without subdomains.
  std::string domain = {};
  // Zero deletes the cookie. Empty: the cookie ends with the browser's session.
  std::optional<std::chrono::seconds> max_age = {};
  bool secure = false;     // Sent over HTTPS only.
  bool http_only = false;  // Hidden from scripts.
  SameSite same_site = SameSite::unset;
  bool partitioned = false;  // Stored separately for each top-level site.
};

// Refers to a cookie of a request.
struct CookieView {
  std::string_view name;
  std::string_view value;
};

// Returns the value of a Set-Cookie header.
// Context: any caller; does not park.
// Throws: std::bad_alloc; std::invalid_argument for a name that is not a token, a value that Cookie
// does not allow, a path that does not begin with '/', a path or domain with a semicolon, a control
// or a non-ASCII character, and more than 4096 bytes of name and value. It also throws for cookies
// that browsers drop: `none` and `partitioned` without `secure`, and the prefixes __Secure- and
// __Host- without the attributes that they require.
[[nodiscard]] std::string to_set_cookie(const Cookie& cookie);
// Adds a Set-Cookie header after the cookies of earlier calls. The answer must not have begun.
// Context: the request's handler; does not park.
// Throws: whatever to_set_cookie() throws.
void add_cookie(Response& response, const Cookie& cookie);

// Returns the cookies in the order of the request's headers, as views into these headers. Values
// are neither decoded nor unquoted. A client may send several cookies with the same name, the most
// specific path first.
// Context: the request's handler; does not park.
// Throws: std::bad_alloc.
[[nodiscard]] std::vector<CookieView> cookies(const Request& request);
// Returns the value of the first cookie with exactly this name, if any.
// Context: the request's handler; does not park.
[[nodiscard]] std::optional<std::string_view> cookie(const Request& request,
                                                     std::string_view name) noexcept;

}  // namespace weft::http
