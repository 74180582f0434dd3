// The errors of TLS, as std::error_code values. All calls from anywhere; they neither park, throw
// nor synchronize.
#pragma once

#include <system_error>

namespace weft::tls {

enum class Errc {
  truncated = 1,  // The peer's stream ended without close_notify: another party may have cut it.
  encrypted_key,  // A key file is of no use without a password.
};

// The category of Errc; its name is "weft-tls". Lives as long as the process.
[[nodiscard]] const std::error_category& error_category() noexcept;
// Errors of OpenSSL; the message is its reason, "no shared cipher", say.
[[nodiscard]] const std::error_category& openssl_category() noexcept;
// Why a certificate was refused: values of OpenSSL's X509_V_ERR_; the message, "certificate verify
// failed: hostname mismatch", say, names the check.
[[nodiscard]] const std::error_category& verification_category() noexcept;

// An Errc as a std::error_code: so they compare, `error == tls::Errc::truncated`.
[[nodiscard]] inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

}  // namespace weft::tls

template <>
struct std::is_error_code_enum<weft::tls::Errc> : std::true_type {};
