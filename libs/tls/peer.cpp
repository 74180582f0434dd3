#include "libs/tls/peer.hpp"

#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace weft::tls {

namespace {

using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreeBy<&GENERAL_NAMES_free>>;

std::string subject_of(const X509& certificate) {
  const BioPtr text(BIO_new(BIO_s_mem()));
  if (text == nullptr ||
      X509_NAME_print_ex(text.get(), X509_get_subject_name(&certificate), 0, XN_FLAG_ONELINE) < 0) {
    throw std::bad_alloc();
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string text_of(const ASN1_STRING& string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(&string)),
          static_cast<std::size_t>(ASN1_STRING_length(&string))};
}

// Returns an address as text: "127.0.0.1", or the eight numbers of IPv6.
std::string address_of(GENERAL_NAME& name) {
  const BioPtr text(BIO_new(BIO_s_mem()));
  if (text == nullptr || GENERAL_NAME_print(text.get(), &name) != 1) throw std::bad_alloc();
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  const std::string_view all(data, static_cast<std::size_t>(size));
  return std::string(all.substr(std::min(all.size(), all.find(':') + 1)));  // After "IP Address:".
}

std::vector<std::string> names_of(const X509& certificate) {
  std::vector<std::string> names;
  const NamesPtr found(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (found == nullptr) return names;
  for (int i = 0; i < sk_GENERAL_NAME_num(found.get()); ++i) {
    GENERAL_NAME* const name = sk_GENERAL_NAME_value(found.get(), i);
    switch (name->type) {
      case GEN_DNS:
        names.push_back("DNS:" + text_of(*name->d.dNSName));
        break;
      case GEN_EMAIL:
        names.push_back("email:" + text_of(*name->d.rfc822Name));
        break;
      case GEN_URI:
        names.push_back("URI:" + text_of(*name->d.uniformResourceIdentifier));
        break;
      case GEN_IPADD:
        names.push_back("IP:" + address_of(*name));
        break;
      default:
        break;
    }
  }
  return names;
}

std::vector<std::byte> der_of(const X509& certificate) {
  const int size = i2d_X509(&certificate, nullptr);
  if (size < 0) throw std::bad_alloc();
  std::vector<std::byte> der(static_cast<std::size_t>(size));
  auto* end = reinterpret_cast<unsigned char*>(der.data());
  (void)i2d_X509(&certificate, &end);
  return der;
}

std::string or_empty(const char* text) { return text != nullptr ? text : ""; }

}  // namespace

net::TlsInfo describe(const SSL& ssl) {
  net::TlsInfo info;
  info.version = or_empty(SSL_get_version(&ssl));
  info.cipher = or_empty(SSL_get_cipher_name(&ssl));
  info.server_name = or_empty(SSL_get_servername(&ssl, TLSEXT_NAMETYPE_host_name));
  const unsigned char* chosen = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(&ssl, &chosen, &size);
  info.alpn.assign(reinterpret_cast<const char*>(chosen), size);
  if (const X509* const certificate = SSL_get0_peer_certificate(&ssl)) {
    info.peer = {.subject = subject_of(*certificate),
                 .names = names_of(*certificate),
                 .der = der_of(*certificate),
                 .verified = SSL_get_verify_result(&ssl) == X509_V_OK};
  }
  return info;
}

}  // namespace weft::tls
