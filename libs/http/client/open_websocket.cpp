// Opens a client's WebSocket.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <weft/http/error.hpp>
#include <weft/http/websocket.hpp>

#include "libs/http/client/client_core.hpp"
#include "libs/http/websocket/deflate.hpp"
#include "libs/http/websocket/handshake.hpp"
#include "libs/http/websocket/websocket_core.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

namespace {

constexpr std::size_t kMostOfHead = 16 * 1024;

// Contains a WebSocket and the objects to which it refers, so that one shared pointer owns them
// all.
struct OwnedWebSocket {
  OwnedWebSocket(std::unique_ptr<ClientConnection> made, const WebSocketOptions& wanted,
                 std::string protocol, const std::optional<DeflateTerms>& terms)
      : connection(std::move(made)),
        options(wanted),
        core(Role::client, {connection->stream, connection->input.rest(), connection->layer.get()},
             options, std::move(protocol), terms) {}

  const std::unique_ptr<ClientConnection> connection;
  const WebSocketOptions options;
  WebSocket::Core core;
  WebSocket socket{core};
};

// Parses a URL with the scheme "ws" or "wss" as a URL with the scheme "http" or "https".
net::Result<Url> parse_socket_url(std::string_view text) {
  const std::string_view scheme = text.substr(0, text.find(':'));
  if (!equal_tokens(scheme, "ws") && !equal_tokens(scheme, "wss")) return Url::parse(text);
  return Url::parse("http" + std::string(text.substr(2)));
}

// Returns the head of the opening request, or an empty string if the caller's headers are invalid.
std::string make_opening(const Url& url, const WebSocketCall& call, const std::string& key) {
  Call request;
  request.headers = call.headers;
  const auto add = [&request](std::string_view name, std::string value) {
    if (!value.empty()) request.headers.emplace_back(name, std::move(value));
  };
  add("Upgrade", "websocket");
  add("Sec-WebSocket-Version", "13");
  add("Sec-WebSocket-Key", key);
  std::string offered;
  for (const std::string& protocol : call.options.protocols) {
    offered += (offered.empty() ? "" : ", ") + protocol;
  }
  add("Sec-WebSocket-Protocol", offered);
  if (call.options.compress && can_deflate()) {
    add("Sec-WebSocket-Extensions", std::string(deflate_offer(context_of(call.options))));
  }
  std::string head = make_call_head(url, request);
  if (!head.empty()) head.insert(head.size() - 2, "Connection: Upgrade\r\n");
  return head;
}

// The options that a server has selected.
struct Selection {
  std::string protocol;
  std::optional<DeflateTerms> terms = {};
};

// Returns Errc::unsupported if the server has not accepted the protocol switch, or has selected an
// option that was not offered.
net::Result<Selection> check_answer(const Head& head, const WebSocketOptions& options,
                                    const std::string& key) {
  const auto headers = head.headers();
  const bool accepts = head.status == 101 &&
                       list_has(join_values(headers, "upgrade"), "websocket") &&
                       list_has(join_values(headers, "connection"), "upgrade") &&
                       join_values(headers, "sec-websocket-accept") == accept_key(key);
  Selection selection{.protocol = join_values(headers, "sec-websocket-protocol")};
  const auto& offered = options.protocols;
  const bool is_offered =
      selection.protocol.empty() ||
      std::find(offered.begin(), offered.end(), selection.protocol) != offered.end();
  const std::string extensions = join_values(headers, "sec-websocket-extensions");
  if (options.compress) selection.terms = accept_deflate(extensions, context_of(options));
  const bool can_extend = extensions.empty() || selection.terms;
  if (!accepts || !is_offered || !can_extend) return {.error = Errc::unsupported};
  return {.value = std::move(selection)};
}

}  // namespace

net::Result<std::shared_ptr<WebSocket>> open_websocket(const WebSocketCall& call,
                                                       const Until& until) {
  const auto [url, malformed] = parse_socket_url(call.url);
  if (malformed) return {.error = malformed};
  std::array<char, 16> random{};
  fill_randomly(random);
  std::array<std::uint8_t, 16> bytes{};
  std::copy(random.begin(), random.end(), bytes.begin());
  const std::string key = base64(bytes);
  const std::string request = make_opening(url, call, key);
  if (request.empty()) return {.error = Errc::malformed_call};
  auto [connection, unreachable] =
      dial_server(url, {call.secure, call.unix_socket, call.resolver}, until);
  if (unreachable) return {.error = unreachable};
  if (const auto error = connection->write(request, until)) return {.error = error};
  std::string text;
  if (const auto error = receive_head(*connection, kMostOfHead, text, until)) {
    return {.error = error};
  }
  Head head;
  if (const Fault fault = parse_response_head(text, Limits::kMaxHeaders, head)) {
    return {.error = *fault};
  }
  auto [selection, refused] = check_answer(head, call.options, key);
  if (refused) return {.error = refused};
  const auto owned = std::make_shared<OwnedWebSocket>(
      std::move(connection), call.options, std::move(selection.protocol), selection.terms);
  return {.value = std::shared_ptr<WebSocket>(owned, &owned->socket)};
}

}  // namespace weft::http
