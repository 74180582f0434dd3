// Sets the server name that a client expects.
#pragma once

#include <string>
#include <system_error>

#include "libs/tls/openssl.hpp"

namespace weft::tls {

// Removes the final dot of "a.test.": certificates have none, and RFC 6066 forbids it in the server
// name that is sent.
[[nodiscard]] std::string without_final_dot(std::string name);
// Makes the client request `name`, and accept only a certificate for that name. Errors:
// invalid_argument for an empty name, which OpenSSL would treat as any name, and for a name that
// contains a zero byte; otherwise, the errors of OpenSSL.
[[nodiscard]] std::error_code expect_server(SSL& ssl, const std::string& name) noexcept;

}  // namespace weft::tls
