#include <algorithm>
#include <charconv>
#include <string>
#include <weft/http/error.hpp>
#include <weft/http/header.hpp>
#include <weft/http/url.hpp>

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
bool is_v6_char(char c) noexcept { return is_name_char(c) || c == ':' || c == '%'; }
// Goes into a request line as it is.
bool is_target_char(char c) noexcept { return c > 0x20 && c < 0x7f && c != '#'; }

std::uint16_t default_port(std::string_view scheme) noexcept {
  return scheme == "https" ? 443 : 80;
}

// The host and, if there is one, the port.
bool parse_authority(std::string_view text, Url& url) {
  std::string_view host = text;
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return false;
    host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    has_port = rest.starts_with(':');
    if (!rest.empty() && !has_port) return false;
    port = rest.substr(has_port ? 1 : 0);
    if (host.find(':') == std::string_view::npos || !all_of(host, is_v6_char)) return false;
  } else {
    const std::size_t colon = text.find(':');
    has_port = colon != std::string_view::npos;
    host = text.substr(0, colon);
    if (has_port) port = text.substr(colon + 1);
    if (host.empty() || !all_of(host, is_name_char)) return false;
  }
  url.host = host;
  std::transform(url.host.begin(), url.host.end(), url.host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  url.port = default_port(url.scheme);
  if (port.empty()) return true;  // "host:" is allowed.
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  return error == std::errc() && end == port.data() + port.size() && url.port != 0;
}

// RFC 3986, 5.2.4. `path` begins with a slash.
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

net::Result<Url> fail(Errc code) { return {.error = code}; }

}  // namespace

net::Result<Url> Url::parse(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return fail(Errc::malformed);
  const std::string_view scheme = text.substr(0, colon);
  Url url;
  if (equal_tokens(scheme, "https")) {
    url.scheme = "https";
  } else if (!equal_tokens(scheme, "http")) {
    return fail(Errc::unsupported);
  }
  text.remove_prefix(colon + 3);
  const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
  if (!parse_authority(text.substr(0, end), url)) return fail(Errc::malformed);
  text.remove_prefix(end);
  text = text.substr(0, text.find('#'));
  if (!all_of(text, is_target_char)) return fail(Errc::malformed);
  url.target.assign(text.starts_with('/') ? 0 : 1, '/');
  url.target.append(text);
  return {.value = std::move(url)};
}

net::Result<Url> Url::resolve(std::string_view reference) const {
  reference = reference.substr(0, reference.find('#'));
  if (reference.empty()) return {.value = *this};
  const std::size_t stop = reference.find_first_of(":/?");
  if (stop != std::string_view::npos && reference[stop] == ':') {
    return reference.substr(stop).starts_with("://") ? parse(reference) : fail(Errc::unsupported);
  }
  if (reference.starts_with("//")) return parse(scheme + ":" + std::string(reference));
  if (!all_of(reference, is_target_char)) return fail(Errc::malformed);
  Url url = *this;
  const std::string path = target.substr(0, target.find('?'));
  if (reference.starts_with('?')) {
    url.target = path + std::string(reference);
    return {.value = std::move(url)};
  }
  const std::size_t query = std::min(reference.find('?'), reference.size());
  std::string merged(reference.substr(0, query));
  if (!merged.starts_with('/')) merged.insert(0, path.substr(0, path.rfind('/') + 1));
  url.target = without_dots(merged) + std::string(reference.substr(query));
  return {.value = std::move(url)};
}

std::string Url::authority() const {
  std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != default_port(scheme)) text.append(1, ':').append(std::to_string(port));
  return text;
}

}  // namespace weft::http
