// Stores the cookies of a client.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <weft/http/url.hpp>

namespace weft::http {

// Each number must be at least 1. When the jar or a domain exceeds its limit, it loses a cookie: an
// expired one or, if none of its cookies has expired, the least recently used one.
struct CookieJarOptions {
  std::size_t max_cookies = 3000;
  std::size_t max_per_domain = 50;
};

// Keeps cookies and selects the cookies for a request. It follows the rules of RFC 6265bis for
// domain, path, Secure, Max-Age, Expires and the prefixes __Secure- and __Host-. It ignores a
// cookie whose name and value together exceed 4096 bytes. The jar differs from the RFC mainly in
// three ways. It has no list of public suffixes, so a host below "co.uk" can set cookies for all
// hosts below "co.uk". The jar rejects only single-label domains, such as "com". SameSite and
// Partitioned have no effect, because no web page sends the requests. The jar stores nothing on
// disk. A jar works without a Client; `ClientOptions::cookies` connects it to a Client.
// Context: any number of fibers and plain threads; calls park only briefly.
// Throws: std::bad_alloc.
class CookieJar {
 public:
  // Makes an empty jar.
  // Throws: std::invalid_argument if a number in `options` is 0.
  explicit CookieJar(CookieJarOptions options = {});
  // Drops all cookies.
  ~CookieJar();
  CookieJar(CookieJar&) = delete;
  CookieJar& operator=(const CookieJar&) = delete;

  // Reads a Set-Cookie header of a response from `url`, and stores, replaces or deletes the cookie.
  // Ignores a cookie that RFC 6265bis rejects.
  void add(const Url& url, std::string_view set_cookie);
  // Returns the value of a Cookie header for `url`, such as "a=1; b=2", or an empty string. Cookies
  // with longer paths come first; among equal lengths, older cookies come first.
  [[nodiscard]] std::string header_for(const Url& url);
  // Returns the number of cookies, some of which may have expired.
  [[nodiscard]] std::size_t size() const;
  // Drops all cookies.
  void clear();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace weft::http
