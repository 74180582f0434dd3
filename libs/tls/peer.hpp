// Describes the peer of a connection by plain values.
#pragma once

#include <weft/net/tls_info.hpp>

#include "libs/tls/openssl.hpp"

namespace weft::tls {

// No other call may use `ssl` at the same time. Throws std::bad_alloc.
[[nodiscard]] net::TlsInfo describe(const SSL& ssl);

}  // namespace weft::tls
