// Holds the record of one connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/http/response.hpp>
#include <weft/net/proxy_protocol.hpp>
#include <weft/net/tcp_stream.hpp>

#include "libs/http/server/transport.hpp"
#include "net/connections.hpp"

namespace weft::http {

class ServerCore;
enum class SessionEnd : std::uint8_t;

// Holds the socket and state of a connection. An idle connection waits for bytes without a stack.
class ServerConnection : public net::ConnectionRecord {
 public:
  ServerConnection(net::TcpStream stream, ServerCore& server) noexcept;

  // Does the same as net::ConnectionRecord::wait_for_bytes(); a new fiber then serves the
  // connection.
  [[nodiscard]] bool wait_for_bytes() noexcept;
  // Switches the connection from HTTP to `talk`, whose first call receives the bytes that arrived
  // early. Only the serving fiber may call upgrade().
  void upgrade(Talk talk, std::string_view early) {
    conversation_ =
        std::make_unique<Conversation>(Conversation{std::move(talk), std::string(early)});
  }

  [[nodiscard]] ServerCore& server() const noexcept { return server_; }
  [[nodiscard]] Transport& transport() noexcept { return transport_; }
  [[nodiscard]] const Transport& transport() const noexcept { return transport_; }
  [[nodiscard]] Progress& progress() noexcept { return transport_.progress(); }
  // Returns the PROXY header, or null if there is none. Only the serving fiber may call proxied().
  [[nodiscard]] const net::ProxyHeader* proxied() const noexcept { return proxied_.get(); }
  // Adds a request to this connection's count. Relaxed: a count.
  void count_request() noexcept {
    requests_.store(requests_.load(detail::relaxed) + 1, detail::relaxed);
  }
  [[nodiscard]] std::uint32_t requests() const noexcept { return requests_.load(detail::relaxed); }

 private:
  // The protocol after an upgrade; allocated separately, because few connections are upgraded.
  struct Conversation {
    Talk talk;
    std::string early;
  };

  void serve() noexcept;
  [[nodiscard]] SessionEnd serve_bytes();
  [[nodiscard]] bool begins_with_header() const noexcept;
  [[nodiscard]] SessionEnd read_proxy_header();
  [[nodiscard]] SessionEnd shake_hands();
  [[nodiscard]] SessionEnd converse(bool begins);

  Transport transport_;
  std::unique_ptr<Conversation> conversation_;
  std::unique_ptr<const net::ProxyHeader> proxied_;
  ServerCore& server_;
  detail::Atomic<std::uint32_t> requests_{0};
  bool is_begun_ = false;  // True once the PROXY header, if any, has been read.
};

}  // namespace weft::http
