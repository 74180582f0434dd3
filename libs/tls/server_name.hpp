// The name of the server that a client expects.
#pragma once

#include <string>
#include <system_error>

#include "libs/tls/openssl.hpp"

namespace weft::tls {

// "a.test" for "a.test.": a certificate has no final dot, and RFC 6066 forbids it in what is sent.
[[nodiscard]] std::string without_final_dot(std::string name);
// The client asks for `name`, and accepts no certificate but one for it. Errors: invalid_argument
// for an empty name, which OpenSSL would take for any, and for one with a zero inside.
[[nodiscard]] std::error_code expect_server(SSL& ssl, const std::string& name) noexcept;

}  // namespace weft::tls
