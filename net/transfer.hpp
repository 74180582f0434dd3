// What sockets use of io.
#pragma once

#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>

#include "io/attempt.hpp"
#include "net/system_calls.hpp"

namespace weft::net {

using io::attempt_until;
using io::find_poller;
using io::to_error;

// Registers a new descriptor with the poller; closes it if that fails.
Result<Socket> adopt(io::Poller& poller, int descriptor) noexcept;

}  // namespace weft::net
