#include <weft/http/forward.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>
#include <weft/error.hpp>
#include <weft/http/error.hpp>
#include <weft/net/copy.hpp>
#include <weft/net/dial.hpp>

#include "libs/http/wire/head_parser.hpp"
#include "libs/http/wire/head_rules.hpp"

namespace weft::http {

namespace {

template <std::size_t size>
bool is_one_of(std::string_view name, const std::array<std::string_view, size>& names) noexcept {
  return std::any_of(names.begin(), names.end(),
                     [name](std::string_view each) { return equal_tokens(name, each); });
}

// Returns whether a Connection header names `token`.
bool names_in_connection(std::span<const Header> headers, std::string_view token) noexcept {
  return std::any_of(headers.begin(), headers.end(), [token](const Header& header) {
    return equal_tokens(header.name, "connection") && list_has(header.value, token);
  });
}

// Returns true for headers that the proxy writes itself, or adds to.
bool is_proxys(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 7> kNames = {
      "content-length", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
      "forwarded",      "host"};
  return is_one_of(name, kNames);
}

// Joins the items of all headers of this name, and appends `last`.
std::string joined(const Request& request, std::string_view name, bool keeps, std::string last) {
  std::string all;
  for (const Header& header : request.headers()) {
    if (keeps && equal_tokens(header.name, name)) all.append(header.value).append(", ");
  }
  return all.append(last);
}

// Returns the client's address, such as "192.0.2.1" or "2001:db8::1". An empty text means that the
// client has disconnected.
std::string client_of(const Request& request) {
  const auto [address, error] = request.peer_address();
  if (error) return {};
  const std::string text = address.to_string();
  const std::string_view host = std::string_view(text).substr(0, text.rfind(':'));
  return std::string(address.is_v6() ? host.substr(1, host.size() - 2) : host);
}

void add_origin(const Request& request, const ForwardOptions& options, Call& call) {
  const bool keeps = options.trusts_client;
  const std::string client = client_of(request);
  const std::string host(request.host());
  const auto kept = [&request, keeps](std::string_view name, const std::string& ours) {
    const auto theirs = keeps ? request.header(name) : std::nullopt;
    return theirs ? std::string(*theirs) : ours;
  };
  const bool is_v6 = client.find(':') != std::string::npos;
  std::string forwarded = is_v6 ? "for=\"[" + client + "]\"" : "for=" + client;
  if (client.empty()) forwarded = "for=unknown";
  if (!host.empty()) forwarded += ";host=\"" + host + "\"";
  forwarded += ";proto=" + options.scheme;
  const std::string version = "1." + std::to_string(request.minor_version());
  call.headers.emplace_back("Via", joined(request, "via", true, version + " weft"));
  call.headers.emplace_back("Forwarded", joined(request, "forwarded", keeps, forwarded));
  call.headers.emplace_back("X-Forwarded-For", joined(request, "x-forwarded-for", keeps,
                                                      client.empty() ? "unknown" : client));
  call.headers.emplace_back("X-Forwarded-Host", kept("x-forwarded-host", host));
  call.headers.emplace_back("X-Forwarded-Proto", kept("x-forwarded-proto", options.scheme));
}

// Our server can send no higher status.
constexpr int kLastStatus = 599;

void add_headers(const Reply& reply, Response& response) {
  response.set_status(reply.status());
  for (const Header& header : reply.headers()) {
    if (is_hop_by_hop(reply.headers(), header.name) || equal_tokens(header.name, "date")) continue;
    response.add_header(header.name, header.value);
  }
}

// The server's side of a connection that has switched to another protocol.
struct Tunnel {
  net::TcpStream stream;
  std::string answer;  // The head of the answer, and the bytes that came with it.
};

// Makes a stream of a client whose connection has a layer.
struct LayerStream {
  Upgraded& client;

  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) {
    return client.read_some(buffer, until);
  }
  net::Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until) {
    return client.write_all(data, until);
  }
  net::Result<void> shutdown(const Until& until) { return client.layer->shutdown(until); }
};

void relay_all(Upgraded client, Tunnel& tunnel) {
  const Until until(client.stop);
  if (client.write_all(std::as_bytes(std::span(tunnel.answer)), until).error) return;
  if (tunnel.stream.write_all(std::as_bytes(std::span(client.early)), until).error) return;
  client.early = {};
  if (client.layer == nullptr) {
    (void)net::relay(client.stream, tunnel.stream, until);
  } else {
    LayerStream stream{client};
    (void)net::relay(stream, tunnel.stream, until);
  }
}

std::string make_upgrade_head(const Request& request, const Url& url, const Call& call) {
  std::string head = call.method + " " + url.target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : call.headers) head += name + ": " + value + "\r\n";
  head.append("Connection: Upgrade\r\nUpgrade: ").append(request.header("upgrade").value_or(""));
  return head.append("\r\n\r\n");
}

// Sends the request and receives the head of the answer.
std::error_code ask(Tunnel& tunnel, const std::string& head, int& status, const Until& until) {
  constexpr std::size_t kMost = 16 * 1024;
  if (const auto error = tunnel.stream.write_all(std::as_bytes(std::span(head)), until).error) {
    return error;
  }
  std::array<char, 2048> part;
  while (tunnel.answer.find("\r\n\r\n") == std::string::npos) {
    if (tunnel.answer.size() > kMost) return Errc::head_too_large;
    const auto [count, error] =
        tunnel.stream.read_some(std::as_writable_bytes(std::span(part)), until);
    if (error == weft::Errc::end_of_stream) return Errc::unexpected_end;
    if (error) return error;
    tunnel.answer.append(part.data(), count);
  }
  Head parsed;
  const std::string_view line(tunnel.answer.data(), tunnel.answer.find("\r\n"));
  if (const Fault fault = parse_status_line(line, parsed)) return *fault;
  status = parsed.status;
  return status == 101 || status >= 200 ? std::error_code() : Errc::malformed_start;
}

}  // namespace

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
  call.url.append(origin).append(request.path());
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
  constexpr std::size_t kSize = 16 * 1024;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kSize);
  const std::span part(buffer.get(), kSize);
  // A small answer is sent by one write.
  if (reply.content_length().value_or(kSize + 1) <= kSize) {
    std::size_t size = 0;
    for (;;) {
      const auto [count, error] = reply.read_some(part.subspan(size), until);
      if (error == weft::Errc::end_of_stream) break;
      if (error) return error;
      size += count;
      if (size == kSize) break;
    }
    add_headers(reply, response);
    return size == 0 ? response.write(std::string_view())
                     : response.send({reinterpret_cast<const char*>(part.data()), size});
  }
  add_headers(reply, response);
  // Sends the head before the body, which may be slow.
  std::error_code error = response.write(std::string_view());
  while (!error) {
    const auto [count, failed] = reply.read_some(part, until);
    if (failed == weft::Errc::end_of_stream) return {};
    error = failed;
    if (!error) error = response.write(part.first(count));
  }
  response.break_off();
  return error;
}

bool asks_for_upgrade(const Request& request) noexcept {
  const auto protocol = request.header("upgrade");
  return protocol && names_in_connection(request.headers(), "upgrade") &&
         request.minor_version() == 1 && !request.has_body() && !list_has(*protocol, "h2c");
}

net::Result<void> forward_upgrade(Request& request, Response& response, std::string_view origin,
                                  const ForwardOptions& options, const Until& until) {
  if (!asks_for_upgrade(request)) return Errc::unsupported;
  const Call call = forward_call(request, origin, options);
  const auto [url, malformed] = Url::parse(call.url);
  if (malformed) return malformed;
  if (url.scheme != "http") return Errc::unsupported;
  const auto [addresses, unknown] = net::resolve(url.host, url.port, until);
  if (unknown) return unknown;
  auto [stream, unreachable] = net::dial(addresses, until);
  if (unreachable) return unreachable;
  const auto tunnel = std::make_shared<Tunnel>();
  tunnel->stream = std::move(stream);
  int status = 0;
  if (const auto error = ask(*tunnel, make_upgrade_head(request, url, call), status, until)) {
    return error;
  }
  if (status > kLastStatus) return Errc::malformed_start;
  if (status != 101) {
    response.set_status(status);
    return response.send({});
  }
  return response.upgrade({}, [tunnel](const Upgraded& client) { relay_all(client, *tunnel); });
}

}  // namespace weft::http
