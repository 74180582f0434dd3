#include <weft/tls/error.hpp>

#include <openssl/err.h>
#include <openssl/x509.h>

#include <string>
#include <weft/detail/first_use.hpp>

namespace weft::tls {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft-tls"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::truncated:
        return "the peer's stream ended without close_notify: another party may have truncated it, "
               "so the data may be incomplete";
      case Errc::encrypted_key:
        return "the key file is encrypted, and no password is requested: decrypt it, for example "
               "by `openssl pkey`";
      case Errc::too_many_handshakes:
        return "a newer handshake took the place of this one: raise "
               "tls::ServerOptions::max_handshakes if clients did not abandon theirs";
      case Errc::certificate_without_name:
        return "a certificate of tls::ServerOptions::more_certificates has no DNS name among its "
               "alternative names, so no client can ask for it";
    }
    return "unknown weft-tls error";
  }
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    if (static_cast<Errc>(code) == Errc::too_many_handshakes) {
      return std::make_error_condition(std::errc::resource_unavailable_try_again);
    }
    return {code, *this};
  }
};
constinit detail::StaticObject<Category> category;

class OpenSslCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "openssl"; }
  [[nodiscard]] std::string message(int code) const override {
    const char* const reason = ERR_reason_error_string(static_cast<unsigned int>(code));
    return reason != nullptr ? reason : "unknown OpenSSL error";
  }
};
constinit detail::StaticObject<OpenSslCategory> openssl_errors;

class VerificationCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft-tls-verification"; }
  [[nodiscard]] std::string message(int code) const override {
    return std::string("certificate verify failed: ") + X509_verify_cert_error_string(code);
  }
};
constinit detail::StaticObject<VerificationCategory> verification_errors;

}  // namespace

const std::error_category& error_category() noexcept { return category.get(); }

const std::error_category& openssl_category() noexcept { return openssl_errors.get(); }

const std::error_category& verification_category() noexcept { return verification_errors.get(); }

}  // namespace weft::tls
