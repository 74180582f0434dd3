// A connection's requests, while there are any.
#pragma once

#include <cstdint>

namespace weft::http {

class Connection;

enum class SessionEnd : std::uint8_t {
  idle,      // Nothing has come that is not answered: wait for bytes.
  over,      // The connection is not used any more.
  upgraded,  // It speaks another protocol: see Connection::upgrade().
};

// Reads and answers requests until there are no more bytes. In a fiber; parks.
[[nodiscard]] SessionEnd serve_session(Connection& connection);

}  // namespace weft::http
