// Serves a WebSocket that has a fiber only while it handles messages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <weft/detail/thread_annotations.hpp>
#include <weft/http/response.hpp>
#include <weft/http/websocket.hpp>
#include <weft/mutex.hpp>
#include <weft/net/serve.hpp>
#include <weft/timer.hpp>

#include "libs/http/websocket/websocket_core.hpp"

namespace weft::http {

// Holds the state that the program's pointers to a WebSocket share. This object has no fiber.
// Instead, a timer repeatedly checks whether the peer is silent.
class SharedWebSocket : public std::enable_shared_from_this<SharedWebSocket> {
 public:
  SharedWebSocket(const Upgraded& link, const WebSocketOptions& options,
                  const std::string& protocol, const std::optional<DeflateTerms>& terms)
      : options_(options), core_(Role::server, link, options_, protocol, terms) {}

  [[nodiscard]] WebSocket::Core& core() noexcept { return core_; }
  [[nodiscard]] WebSocket& socket() noexcept { return socket_; }
  // Sends pings to a silent peer until end() is called. Ends the connection if the peer does not
  // answer.
  void watch();
  // Closes the link, so all calls on the WebSocket return. After end() returns, no call uses the
  // link.
  void end() noexcept;

 private:
  const WebSocketOptions options_;
  WebSocket::Core core_;
  WebSocket socket_{core_};
  Mutex mutex_;
  bool is_over_ WEFT_GUARDED_BY(mutex_) = false;
  DelayedCall look_ WEFT_GUARDED_BY(mutex_);
};

// Holds the state of one connection's WebSocket. The connection owns this object, and destroys it
// when the connection ends.
class MessageTalk {
 public:
  MessageTalk(WebSocketHandlers handlers, const WebSocketOptions& options, std::string protocol,
              const std::optional<DeflateTerms>& terms)
      : handlers_(std::move(handlers)),
        options_(options),
        protocol_(std::move(protocol)),
        terms_(terms) {}
  ~MessageTalk();
  MessageTalk(const MessageTalk&) = delete;
  MessageTalk& operator=(const MessageTalk&) = delete;

  // Passes the received messages to the handlers.
  [[nodiscard]] net::Next serve(const Upgraded& link);

 private:
  void open(const Upgraded& link);
  [[nodiscard]] net::Next pass_messages();
  void end();

  const WebSocketHandlers handlers_;
  const WebSocketOptions options_;
  const std::string protocol_;
  const std::optional<DeflateTerms> terms_;
  std::shared_ptr<SharedWebSocket> shared_;  // Null before open() and after end().
};

}  // namespace weft::http
