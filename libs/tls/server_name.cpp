#include "libs/tls/server_name.hpp"

#include <openssl/x509v3.h>

#include <utility>

#include "libs/tls/wire.hpp"

namespace weft::tls {

std::string without_final_dot(std::string name) {
  if (name.size() > 1 && name.back() == '.') name.pop_back();
  return name;
}

std::error_code expect_server(SSL& ssl, const std::string& name) noexcept {
  if (name.empty() || name.find('\0') != std::string::npos) {
    return std::make_error_code(std::errc::invalid_argument);
  }
  // An IP address is matched against the addresses in the certificate, and is not sent as a server
  // name.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(&ssl), name.c_str()) == 1) return {};
  // RFC 9110, 4.3.4: the common name of a certificate does not identify a host.
  SSL_set_hostflags(&ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const bool asked = SSL_set1_host(&ssl, name.c_str()) == 1 &&
                     // It does what the macro SSL_set_tlsext_host_name does, without its casts.
                     SSL_ctrl(&ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                              const_cast<char*>(name.c_str())) == 1;
  return asked ? std::error_code{} : take_error();
}

}  // namespace weft::tls
