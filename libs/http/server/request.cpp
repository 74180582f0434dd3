#include <weft/http/request.hpp>

#include <array>
#include <utility>
#include <weft/error.hpp>

#include "libs/http/server/exchange.hpp"
#include "libs/http/server/forwarded.hpp"
#include "libs/http/server/server_connection.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/wire/list_items.hpp"

namespace weft::http {

namespace {

// Returns the target. Removes the scheme and the host if the target begins with them.
std::string_view origin_form(std::string_view target) noexcept {
  if (target.starts_with('/') || target == "*") return target;
  const std::size_t host = target.find("://");
  if (host == std::string_view::npos) return target;
  const std::size_t slash = target.find_first_of("/?", host + 3);
  if (slash == std::string_view::npos) return "/";
  return target.substr(slash);
}

// Calls `visit` with each value of `name` until a call returns true.
template <class Visit>
void visit_values(std::string_view query, std::string_view name, const Visit& visit) {
  while (!query.empty()) {
    const std::string_view pair = take_up_to('&', query);
    const std::size_t equals = pair.find('=');
    if (decode_query(pair.substr(0, equals)) == name) {
      const bool has_value = equals != std::string_view::npos;
      if (visit(has_value ? decode_query(pair.substr(equals + 1)) : std::string())) return;
    }
  }
}

}  // namespace

std::string_view Request::method() const noexcept { return exchange_.head().method; }
std::string_view Request::target() const noexcept { return exchange_.head().target; }

std::string_view Request::path() const noexcept {
  const std::string_view target = origin_form(exchange_.head().target);
  const std::string_view path = target.substr(0, target.find('?'));
  return path.empty() ? std::string_view("/") : path;
}

std::string_view Request::query() const noexcept {
  const std::string_view target = origin_form(exchange_.head().target);
  const std::size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

std::optional<std::string> Request::query_value(std::string_view name) const {
  std::optional<std::string> found;
  visit_values(query(), name, [&found](std::string value) {
    found = std::move(value);
    return true;
  });
  return found;
}

std::vector<std::string> Request::query_values(std::string_view name) const {
  std::vector<std::string> all;
  visit_values(query(), name, [&all](std::string value) {
    all.push_back(std::move(value));
    return false;
  });
  return all;
}

int Request::minor_version() const noexcept { return exchange_.head().minor_version; }

std::span<const Header> Request::headers() const noexcept { return exchange_.head().headers(); }

std::optional<std::string_view> Request::header(std::string_view name) const noexcept {
  for (const Header& header : headers()) {
    if (equal_tokens(header.name, name)) return header.value;
  }
  return std::nullopt;
}

std::string_view Request::host() const noexcept { return exchange_.head().host; }

std::string Request::parameter(std::string_view name) const {
  for (const auto& [known, value] : exchange_.parameters()) {
    if (known == name) return decode_path(value);
  }
  return {};
}

std::string Request::rest_of_path() const {
  const auto& parameters = exchange_.parameters();
  return decode_path(parameters.empty() ? path().substr(1) : parameters.back().second);
}

void Request::add_parameter(std::string_view name, std::string_view value) {
  exchange_.add_parameter(name, value);
}

void Request::set_route(std::uint16_t index) noexcept {
  exchange_.connection().progress().set_route(index);
}

std::optional<std::uint64_t> Request::content_length() const noexcept {
  const Head& head = exchange_.head();
  if (head.framing == Framing::chunked) return std::nullopt;
  return head.content_length;
}

bool Request::has_body() const noexcept { return exchange_.head().framing != Framing::none; }

net::Result<std::size_t> Request::read_some(std::span<std::byte> buffer) {
  return exchange_.read_some(buffer);
}

net::Result<std::string> Request::read_all() {
  net::Result<std::string> all;
  if (const auto length = content_length()) all.value.reserve(static_cast<std::size_t>(*length));
  std::array<char, 4096> part;
  for (;;) {
    const auto [count, error] = read_some(std::as_writable_bytes(std::span(part)));
    if (error == weft::Errc::end_of_stream) return all;
    if (error) {
      all.error = error;
      return all;
    }
    all.value.append(part.data(), count);
  }
}

std::span<const Header> Request::trailers() const noexcept { return exchange_.body().trailers(); }

void Request::set_limits(const RequestLimits& limits) {
  exchange_.body().set_limits(limits);
  if (limits.request) exchange_.set_limit(*limits.request);
}

Context& Request::context() { return exchange_.context(); }

net::Result<net::Address> Request::client_address() const {
  const TrustedProxies& trusted = exchange_.connection().server().options().trusted_proxies;
  if (trusted.networks.empty()) return peer_address();
  return find_client(headers(), peer_address(), trusted).address;
}

std::string_view Request::scheme() const {
  const ServerConnection& connection = exchange_.connection();
  const TrustedProxies& trusted = connection.server().options().trusted_proxies;
  if (!trusted.networks.empty()) {
    const std::string_view told = find_client(headers(), peer_address(), trusted).scheme;
    if (!told.empty()) return told;
  }
  const net::ProxyHeader* const proxied = connection.proxied();
  return (proxied != nullptr && proxied->is_secure) || tls() ? "https" : "http";
}

std::optional<ForwardingHeaders> Request::trusted_headers() const noexcept {
  const TrustedProxies& trusted = exchange_.connection().server().options().trusted_proxies;
  if (trusted.networks.empty() || !trusted.networks.contains(peer_address())) return std::nullopt;
  return trusted.headers;
}

net::Result<net::Address> Request::peer_address() const noexcept {
  const net::ProxyHeader* const proxied = exchange_.connection().proxied();
  if (proxied != nullptr && proxied->source) return {.value = *proxied->source};
  return exchange_.connection().transport().stream().peer_address();
}

std::optional<net::TlsInfo> Request::tls() const {
  const Layer* const layer = exchange_.connection().transport().layer();
  return layer != nullptr ? layer->tls_info() : std::nullopt;
}

}  // namespace weft::http
