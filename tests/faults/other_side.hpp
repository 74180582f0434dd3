// Declares what scenarios with sockets share.
#pragma once

#include <cerrno>
#include <initializer_list>
#include <system_error>
#include <weft/error.hpp>
#include <weft/net/tcp_listener.hpp>

#include "tests/faults/sweep.hpp"

namespace weft::test {

// Returns the errors that one side gets if a fault hits the other side, and `more`.
inline Documented of_other_side(std::initializer_list<std::error_code> more) {
  Documented errors = {
      make_error_code(Errc::end_of_stream),
      make_error_code(Errc::closed),
      std::make_error_code(std::errc::not_enough_memory),
      {ECONNRESET, std::system_category()},
      {EPIPE, std::system_category()},
  };
  errors.insert(errors.end(), more);
  return errors;
}

// Closes the listener at the end of a server, so that no client waits in its queue in vain.
struct CloseAtEnd {
  net::TcpListener& listener;
  ~CloseAtEnd() { listener.close(); }
};

}  // namespace weft::test
