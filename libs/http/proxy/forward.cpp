#include <weft/http/forward.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "libs/http/proxy/pass_on.hpp"
#include "libs/http/wire/header_names.hpp"

namespace weft::http {

namespace {

// Returns true for headers that the proxy writes or extends.
bool is_proxys(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 7> kNames = {
      "content-length", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
      "forwarded",      "host"};
  return is_one_of(name, kNames);
}

// Returns a list that ends with `last`. If `keeps` is true, it begins with the values of all
// headers with this name.
std::string joined(const Request& request, std::string_view name, bool keeps, std::string last) {
  std::string all;
  for (const Header& header : request.headers()) {
    if (keeps && equal_tokens(header.name, name)) all.append(header.value).append(", ");
  }
  return all.append(last);
}

// Returns the client's address, such as "192.0.2.1" or "2001:db8::1". Returns an empty string if
// the connection is a Unix socket, or if the client has disconnected.
std::string client_of(const Request& request) {
  const auto [address, error] = request.peer_address();
  if (error) return {};
  const std::string text = address.to_string();
  std::string_view host = std::string_view(text).substr(0, text.rfind(':'));
  if (address.is_v6()) host = host.substr(1, host.size() - 2);
  return std::string(host.substr(0, host.find('%')));  // An IPv6 zone is valid only on this host.
}

// Returns the scheme that the peer, a client or a proxy, used to reach this server.
std::string scheme_of_connection(const Request& request, const ForwardOptions& options) {
  if (!options.scheme.empty()) return options.scheme;
  if (!request.trusted_headers()) return std::string(request.scheme());
  return request.tls() ? "https" : "http";
}

void add_origin(const Request& request, const ForwardOptions& options, Call& call) {
  const auto trusted = request.trusted_headers();
  const bool keeps_list = options.trusts_client || trusted == ForwardingHeaders::forwarded;
  const bool keeps_x = options.trusts_client || trusted == ForwardingHeaders::x_forwarded;
  const std::string scheme = scheme_of_connection(request, options);
  const std::string client = client_of(request);
  const std::string host(request.host());
  const auto kept = [&request](std::string_view name, bool keeps, const std::string& ours) {
    const std::string all = keeps ? joined(request, name, true, "") : std::string();
    return all.empty() ? ours : all.substr(0, all.size() - 2);
  };
  const bool is_v6 = client.find(':') != std::string::npos;
  std::string forwarded = is_v6 ? "for=\"[" + client + "]\"" : "for=" + client;
  if (client.empty()) forwarded = "for=unknown";
  if (!host.empty()) forwarded += ";host=\"" + host + "\"";
  forwarded += ";proto=" + scheme;
  const std::string version = "1." + std::to_string(request.minor_version());
  call.headers.emplace_back("Via", joined(request, "via", true, version + " weft"));
  call.headers.emplace_back("Forwarded", joined(request, "forwarded", keeps_list, forwarded));
  call.headers.emplace_back("X-Forwarded-For", joined(request, "x-forwarded-for", keeps_x,
                                                      client.empty() ? "unknown" : client));
  call.headers.emplace_back("X-Forwarded-Host",
                            kept("x-forwarded-host", options.trusts_client, host));
  call.headers.emplace_back("X-Forwarded-Proto", kept("x-forwarded-proto", keeps_x, scheme));
}

// Adapts the headers to a body that has been decompressed (RFC 9110, 7.7).
void describe_text(const Reply& reply, Response& response) {
  for (const std::string_view name : kDigests) response.remove_header(name);
  for (const std::string_view name : {"Content-Encoding", "Content-Length", "Accept-Ranges"}) {
    response.remove_header(name);
  }
  const auto tag = reply.header("etag");
  if (tag && !tag->starts_with("W/")) response.set_header("ETag", "W/" + std::string(*tag));
}

void begin_answer(const Reply& reply, Response& response) {
  pass_head(reply.status(), reply.headers(), response);
  if (reply.is_decompressed()) describe_text(reply, response);
}

}  // namespace

bool names_in_connection(std::span<const Header> headers, std::string_view token) noexcept {
  return std::any_of(headers.begin(), headers.end(), [token](const Header& header) {
    return equal_tokens(header.name, "connection") && list_has(header.value, token);
  });
}

void pass_head(int status, std::span<const Header> headers, Response& response) {
  response.set_status(status);
  for (const Header& header : headers) {
    if (is_hop_by_hop(headers, header.name) || equal_tokens(header.name, "date")) continue;
    response.add_header(header.name, header.value);
  }
}

bool is_hop_by_hop(std::span<const Header> headers, std::string_view name) noexcept {
  constexpr std::array<std::string_view, 9> kNames = {"connection",
                                                      "keep-alive",
                                                      "proxy-authenticate",
                                                      "proxy-authorization",
                                                      "proxy-connection",
                                                      "te",
                                                      "trailer",
                                                      "transfer-encoding",
                                                      "upgrade"};
  return is_one_of(name, kNames) || names_in_connection(headers, name);
}

Call forward_call(Request& request, std::string_view origin, const ForwardOptions& options) {
  Call call;
  call.method = request.method();
  call.url.append(origin);
  // An OPTIONS request whose URL has no path refers to the whole server (RFC 9112, 3.2.4).
  if (request.path() != "*") call.url.append(request.path());
  if (!request.query().empty()) call.url.append("?").append(request.query());
  if (!request.host().empty()) call.headers.emplace_back("Host", request.host());
  for (const auto& [name, value] : request.headers()) {
    if (is_proxys(name) || is_hop_by_hop(request.headers(), name)) continue;
    call.headers.emplace_back(name, value);
  }
  add_origin(request, options, call);
  if (request.has_body() && request.content_length() != 0) {
    call.body_source = [&request](std::span<std::byte> buffer) {
      return request.read_some(buffer);
    };
  }
  return call;
}

net::Result<void> forward_reply(Reply& reply, Response& response, const Until& until) {
  if (reply.status() > kLastStatus) return Errc::malformed_start;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPassedBytes);
  const std::span part(buffer.get(), kPassedBytes);
  // The proxy sends a small response with one write.
  if (reply.content_length().value_or(kPassedBytes + 1) <= kPassedBytes) {
    std::size_t size = 0;
    for (;;) {
      const auto [count, error] = reply.read_some(part.subspan(size), until);
      if (error == weft::Errc::end_of_stream) break;
      if (error) return error;
      size += count;
      if (size == kPassedBytes) break;
    }
    begin_answer(reply, response);
    return size == 0 ? response.write(std::string_view())
                     : response.send({reinterpret_cast<const char*>(part.data()), size});
  }
  begin_answer(reply, response);
  return pass_body(reply, part, response, until);
}

}  // namespace weft::http
