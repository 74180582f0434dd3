#include <algorithm>
#include <charconv>
#include <string>
#include <weft/http/error.hpp>
#include <weft/http/header.hpp>
#include <weft/http/url.hpp>

#include "libs/http/wire/authority.hpp"
#include "libs/http/wire/bytes.hpp"

namespace weft::http {

namespace {

bool is_alphanumeric(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool all_of(std::string_view text, bool (*holds)(char) noexcept) noexcept {
  return std::all_of(text.begin(), text.end(), holds);
}

bool is_name_char(char c) noexcept {
  return is_alphanumeric(c) || c == '-' || c == '.' || c == '_';
}
// Returns whether the character may appear unencoded in a request line.
bool is_target_char(char c) noexcept { return c > 0x20 && c < 0x7f && c != '#'; }

std::uint16_t default_port(std::string_view scheme) noexcept {
  return scheme == "https" ? 443 : 80;
}

// Parses the host and the optional port.
bool take_authority(std::string_view text, Url& url) {
  Authority parts;
  if (!parse_authority(text, parts)) return false;
  // Accepts only names that DNS allows and, in brackets, only IPv6 addresses. An address that
  // begins with "v" belongs to a future IP version (RFC 3986, 3.2.2).
  const bool is_right =
      parts.is_literal ? to_lower(parts.host[0]) != 'v' : all_of(parts.host, is_name_char);
  if (!is_right || parts.port == 0) return false;
  url.host = parts.host;
  std::transform(url.host.begin(), url.host.end(), url.host.begin(), to_lower);
  if (!parts.zone.empty()) url.host.append(1, '%').append(parts.zone);
  url.port = parts.port.value_or(default_port(url.scheme));
  return true;
}

// Returns the path without its dot segments (RFC 3986, 5.2.4). `path` begins with a slash.
std::string without_dots(std::string_view path) {
  std::string done;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end);
    if (part == "/." || part == "/..") {
      if (part == "/..") done.resize(done.empty() ? 0 : done.rfind('/'));
      if (path.empty()) done += '/';
    } else {
      done += part;
    }
  }
  return done;
}

// Returns the reference with each space and non-ASCII byte percent-encoded. Links often contain
// such bytes unencoded.
std::string coded(std::string_view reference) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const char c : reference) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == ' ' || byte >= 0x80) {
      text.append(1, '%').append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    } else {
      text += c;
    }
  }
  return text;
}

net::Result<Url> fail(Errc code) { return {.error = code}; }

}  // namespace

net::Result<Url> Url::parse(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return fail(Errc::malformed_url);
  const std::string_view scheme = text.substr(0, colon);
  Url url;
  if (equal_tokens(scheme, "https")) {
    url.scheme = "https";
  } else if (!equal_tokens(scheme, "http")) {
    return fail(Errc::unsupported);
  }
  text.remove_prefix(colon + 3);
  const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
  if (!take_authority(text.substr(0, end), url)) return fail(Errc::malformed_url);
  text.remove_prefix(end);
  text = text.substr(0, text.find('#'));
  if (!all_of(text, is_target_char)) return fail(Errc::malformed_url);
  url.target.assign(text.starts_with('/') ? 0 : 1, '/');
  url.target.append(text);
  return {.value = std::move(url)};
}

net::Result<Url> Url::resolve(std::string_view link) const {
  const std::string text = coded(link.substr(0, link.find('#')));
  const std::string_view reference = text;
  if (reference.empty()) return {.value = *this};
  const std::size_t stop = reference.find_first_of(":/?");
  if (stop != std::string_view::npos && reference[stop] == ':') {
    return reference.substr(stop).starts_with("://") ? parse(reference) : fail(Errc::unsupported);
  }
  if (reference.starts_with("//")) return parse(scheme + ":" + text);
  if (!all_of(reference, is_target_char)) return fail(Errc::malformed_url);
  Url url = *this;
  const std::string path = target.substr(0, target.find('?'));
  if (reference.starts_with('?')) {
    url.target = path + text;
    return {.value = std::move(url)};
  }
  const std::size_t query = std::min(reference.find('?'), reference.size());
  std::string merged(reference.substr(0, query));
  if (!merged.starts_with('/')) merged.insert(0, path.substr(0, path.rfind('/') + 1));
  url.target = without_dots(merged) + std::string(reference.substr(query));
  return {.value = std::move(url)};
}

std::string Url::authority() const {
  const bool is_address = host.find(':') != std::string::npos;
  std::string text = is_address ? "[" : "";
  text.append(host, 0, host.find('%'));
  if (is_address) text += ']';
  if (port != default_port(scheme)) text.append(1, ':').append(std::to_string(port));
  return text;
}

std::string Url::to_string() const {
  std::string text = scheme + "://" + authority();
  if (const std::size_t zone = host.find('%'); zone != std::string::npos) {
    text.insert(text.find(']'), "%25").insert(text.find(']'), host, zone + 1);
  }
  return text + target;
}

}  // namespace weft::http
