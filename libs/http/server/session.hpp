// Serves the requests of a connection until all received bytes are consumed.
#pragma once

#include <cstdint>

namespace weft::http {

class ServerConnection;

enum class SessionEnd : std::uint8_t {
  idle,      // All requests are answered; the connection is waiting for bytes.
  over,      // The connection must be closed.
  upgraded,  // The protocol changes; see ServerConnection::upgrade().
};

// Reads and answers requests until no bytes are left. Parks; only fibers may call serve_session().
[[nodiscard]] SessionEnd serve_session(ServerConnection& connection);

}  // namespace weft::http
