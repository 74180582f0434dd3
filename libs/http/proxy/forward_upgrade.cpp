#include <array>
#include <memory>
#include <utility>
#include <weft/error.hpp>
#include <weft/http/error.hpp>
#include <weft/http/forward.hpp>
#include <weft/net/copy.hpp>
#include <weft/net/dial.hpp>

#include "libs/http/proxy/pass_on.hpp"
#include "libs/http/wire/body.hpp"
#include "libs/http/wire/head_lines.hpp"
#include "libs/http/wire/head_parser.hpp"
#include "libs/http/wire/head_rules.hpp"
#include "libs/http/wire/link.hpp"

namespace weft::http {

namespace {

// Holds a connection to the origin for an upgrade, and the bytes of the origin's response.
struct Tunnel {
  net::TcpStream stream;
  std::unique_ptr<Layer> layer;  // Null for http.
  std::string answer;            // The head of the response, and bytes that arrived with it.
  std::size_t head_size = 0;

  [[nodiscard]] Link link() noexcept { return {stream, layer.get()}; }
};

// Provides the bytes after the head to Body::read_some().
struct TunnelSource {
  Tunnel& tunnel;
  const Until& until;

  [[nodiscard]] std::string_view rest() const noexcept {
    return std::string_view(tunnel.answer).substr(tunnel.head_size);
  }
  void consume(std::size_t size) { tunnel.answer.erase(tunnel.head_size, size); }
  net::Result<std::size_t> receive(std::span<std::byte> buffer) {
    return tunnel.link().read_some(buffer, until);
  }
  std::error_code receive_more() {
    std::array<char, 2048> part;
    const auto [count, error] = receive(std::as_writable_bytes(std::span(part)));
    tunnel.answer.append(part.data(), count);
    return error;
  }
};

// Reads the body of the response if the origin refuses the protocol.
struct RefusalBody {
  Tunnel& tunnel;
  Body body;

  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) {
    TunnelSource source{tunnel, until};
    return body.read_some(buffer, source);
  }
};

// Lets net::relay() use the connection to the origin as a stream.
struct OriginStream {
  Link link;

  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) {
    return link.read_some(buffer, until);
  }
  net::Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until) {
    return link.write_all(data, until);
  }
  net::Result<void> shutdown(const Until& until) { return link.end_writing(until); }
};

// Lets net::relay() use the client's connection as a stream. All bytes pass through the
// connection's Layer.
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
  OriginStream origin{tunnel.link()};
  if (client.write_all(std::as_bytes(std::span(tunnel.answer)), until).error) return;
  if (origin.write_all(std::as_bytes(std::span(client.early)), until).error) return;
  client.early = {};
  LayerStream layered{client};
  if (client.layer == nullptr && tunnel.layer == nullptr) {
    (void)net::relay(client.stream, tunnel.stream, until);
  } else if (client.layer == nullptr) {
    (void)net::relay(client.stream, origin, until);
  } else {
    (void)net::relay(layered, origin, until);
  }
}

std::string make_upgrade_head(const Request& request, const Url& url, const Call& call) {
  std::string head = call.method + " " + url.target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : call.headers) {
    if (!equal_tokens(name, "expect")) head += name + ": " + value + "\r\n";
  }
  head.append("Connection: Upgrade\r\nUpgrade: ").append(request.header("upgrade").value_or(""));
  return head.append("\r\n\r\n");
}

// Connects to the URL's server.
std::error_code reach(Tunnel& tunnel, const Url& url, const ForwardOptions& options,
                      const Until& until) {
  const bool is_secure = url.scheme == "https";
  if (is_secure ? !options.secure : url.scheme != "http") return Errc::unsupported;
  const auto [addresses, unknown] = net::resolve(url.host, url.port, until);
  if (unknown) return unknown;
  auto [stream, unreachable] = net::dial(addresses, until);
  if (unreachable) return unreachable;
  tunnel.stream = std::move(stream);
  if (!is_secure) return {};
  auto [layer, refused] =
      options.secure(tunnel.stream, url.host.substr(0, url.host.find('%')), until);
  tunnel.layer = std::move(layer);
  return refused;
}

std::error_code receive_head(Tunnel& tunnel, const Until& until) {
  constexpr std::size_t kMost = 16 * 1024;
  TunnelSource source{tunnel, until};
  HeadLines lines;
  for (;;) {
    const HeadLines::Verdict verdict = lines.look_at(tunnel.answer);
    if (verdict == HeadLines::Verdict::refused) return Errc::malformed_line;
    if (lines.size() > kMost || tunnel.answer.size() > 2 * kMost) return Errc::head_too_large;
    if (verdict == HeadLines::Verdict::complete) break;
    const std::error_code error = source.receive_more();
    if (error == weft::Errc::end_of_stream) return Errc::unexpected_end;
    if (error) return error;
  }
  tunnel.answer.erase(0, lines.first_line());
  tunnel.head_size = lines.size() - lines.first_line();
  return {};
}

bool switches(const Tunnel& tunnel) noexcept { return tunnel.answer.starts_with("HTTP/1.1 101 "); }

// Sends the request and receives the head of the final response.
std::error_code ask(Tunnel& tunnel, const std::string& head, const Until& until) {
  if (const auto error = tunnel.link().write_all(std::as_bytes(std::span(head)), until).error) {
    return error;
  }
  constexpr int kMostInterim = 16;
  for (int i = 0; i < kMostInterim; ++i) {
    if (const auto error = receive_head(tunnel, until)) return error;
    const std::string_view answer = tunnel.answer;
    if (!answer.starts_with("HTTP/1.1 1") || answer.starts_with("HTTP/1.1 101")) return {};
    tunnel.answer.erase(0, tunnel.head_size);
  }
  return Errc::head_too_large;
}

// Sends the client the response in which the origin refuses the protocol.
std::error_code pass_refusal(Tunnel& tunnel, std::string_view method, Response& response,
                             const Until& until) {
  const std::string text = tunnel.answer.substr(0, tunnel.head_size);
  Head head;
  if (const Fault fault = parse_response_head(text, Limits::kMaxHeaders, head)) return *fault;
  if (head.status < 200 || head.status > kLastStatus) return Errc::malformed_start;
  constexpr int kNoContent = 204;
  constexpr int kNotModified = 304;
  if (method == "HEAD" || head.status == kNoContent || head.status == kNotModified) {
    head.framing = Framing::none;
  }
  RefusalBody refusal{tunnel, Body(head)};
  if (head.framing == Framing::chunked) {
    refusal.body.decode_by({kPassedBytes, Limits::kMaxHeaders});
  }
  pass_head(head.status, head.headers(), response);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPassedBytes);
  return pass_body(refusal, std::span(buffer.get(), kPassedBytes), response, until);
}

}  // namespace

bool asks_for_upgrade(const Request& request) noexcept {
  const auto protocol = request.header("upgrade");
  return protocol && names_in_connection(request.headers(), "upgrade") &&
         request.minor_version() == 1 && !request.has_body() && !list_has(*protocol, "h2c");
}

net::Result<void> forward_upgrade(Request& request, Response& response, std::string_view origin,
                                  const ForwardOptions& options, const Until& until) {
  return forward_upgrade(request, response, origin, options, UpgradeLimits{until, until});
}

net::Result<void> forward_upgrade(Request& request, Response& response, std::string_view origin,
                                  const ForwardOptions& options, const UpgradeLimits& limits) {
  if (!asks_for_upgrade(request)) return Errc::unsupported;
  const Call call = forward_call(request, origin, options);
  const auto [url, malformed] = Url::parse(call.url);
  if (malformed) return malformed;
  const auto tunnel = std::make_shared<Tunnel>();
  if (const auto error = reach(*tunnel, url, options, limits.head)) return error;
  if (const auto error = ask(*tunnel, make_upgrade_head(request, url, call), limits.head)) {
    return error;
  }
  if (!switches(*tunnel)) return pass_refusal(*tunnel, request.method(), response, limits.refusal);
  return response.upgrade({}, [tunnel](const Upgraded& client) { relay_all(client, *tunnel); });
}

}  // namespace weft::http
