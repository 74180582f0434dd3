// Implements the server's side of a handshake.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/http/error.hpp>
#include <weft/http/websocket.hpp>

#include "libs/http/websocket/deflate.hpp"
#include "libs/http/websocket/handshake.hpp"
#include "libs/http/websocket/message_talk.hpp"
#include "libs/http/websocket/websocket_core.hpp"

namespace weft::http {

namespace {

// Answers a handshake. `make_talk` makes the Talk that serves the connection, with the selected
// protocol and compression.
template <class MakeTalk>
net::Result<void> answer_opening(Request& request, Response& response,
                                 const WebSocketOptions& options, const MakeTalk& make_talk) {
  Opening opening = check_opening(request.headers(), options.protocols);
  if (request.method() != "GET") opening.status = 400;
  const auto terms = options.compress ? select_deflate(opening.extensions, context_of(options))
                                      : std::optional<DeflateTerms>();
  const bool opens =
      opening.status == 101 && response.upgrade("websocket", make_talk(opening.protocol, terms));
  if (!opens) {
    response.set_status(opening.status == 101 ? 400 : opening.status);
    response.add_header("Sec-WebSocket-Version", "13");
    if (opening.status == 426) response.add_header("Upgrade", "websocket");
    (void)response.send({});
    return Errc::unsupported;
  }
  response.add_header("Sec-WebSocket-Accept", opening.accept);
  if (!opening.protocol.empty()) response.add_header("Sec-WebSocket-Protocol", opening.protocol);
  if (terms) response.add_header("Sec-WebSocket-Extensions", terms->answer);
  return {};
}

}  // namespace

net::Result<void> accept_talk(Request& request, Response& response,
                              weft::detail::SharedFunction<void(WebSocket&)> talk,
                              const WebSocketOptions& options) {
  const auto make_talk = [&](const std::string& protocol,
                             const std::optional<DeflateTerms>& terms) {
    return [talk = std::move(talk), options, protocol, terms](Upgraded link) {
      WebSocket::Core core(Role::server, link, options, protocol, terms);
      WebSocket socket(core);
      try {
        talk(socket);
      } catch (...) {
        (void)core.close(close_code::kFailed, {}, {});
        throw;
      }
      (void)core.close(close_code::kNormal, {}, {});
    };
  };
  return answer_opening(request, response, options, make_talk);
}

net::Result<void> accept_websocket(Request& request, Response& response, WebSocketHandlers handlers,
                                   const WebSocketOptions& options) {
  if (!handlers.on_message) {
    throw std::invalid_argument("weft::http::WebSocketHandlers: on_message is empty");
  }
  const auto make_talk = [&](const std::string& protocol,
                             const std::optional<DeflateTerms>& terms) {
    const auto talk = std::make_shared<MessageTalk>(std::move(handlers), options, protocol, terms);
    return [talk](Upgraded link) { return talk->serve(link); };
  };
  return answer_opening(request, response, options, make_talk);
}

}  // namespace weft::http
