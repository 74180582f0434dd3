// Reports TLS errors as std::error_code values.
// Context: plain value.
#pragma once

#include <system_error>

namespace weft::tls {

enum class Errc {
  truncated = 1,  // The stream ended without close_notify, perhaps because of an attack.
  encrypted_key,  // A key file requires a password.
  // This handshake, the oldest, was ended because more than ServerOptions::max_handshakes were
  // running. The code compares equal to std::errc::resource_unavailable_try_again.
  too_many_handshakes,
  // A certificate in ServerOptions::more_certificates has no DNS name by which clients could
  // request it.
  certificate_without_name,
};

// Returns the category of Errc, named "weft-tls". The category lives as long as the process.
[[nodiscard]] const std::error_category& error_category() noexcept;
// Returns the category of OpenSSL errors. Messages are OpenSSL's, such as "no shared cipher".
[[nodiscard]] const std::error_category& openssl_category() noexcept;
// Returns the category of certificate verification errors, with OpenSSL's X509_V_ERR_ codes. The
// message names the failed check, such as "certificate verify failed: hostname mismatch".
[[nodiscard]] const std::error_category& verification_category() noexcept;

// Converts an Errc, for comparisons such as `error == tls::Errc::truncated`.
[[nodiscard]] inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

}  // namespace weft::tls

template <>
struct std::is_error_code_enum<weft::tls::Errc> : std::true_type {};
