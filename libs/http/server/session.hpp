// Serves a connection's requests, while there are any.
#pragma once

#include <cstdint>

namespace weft::http {

class Connection;

enum class SessionEnd : std::uint8_t {
  idle,      // All requests are answered: wait for bytes.
  over,      // The connection must be closed.
  upgraded,  // The protocol changes: see Connection::upgrade().
};

// Reads and answers requests until no more bytes are there. Fibers only; parks.
[[nodiscard]] SessionEnd serve_session(Connection& connection);

}  // namespace weft::http
