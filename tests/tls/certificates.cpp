#include "tests/tls/certificates.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

namespace weft::test {

namespace {

void require(bool holds) {
  if (!holds) throw std::runtime_error("cannot make a certificate");
}

X509* make_certificate(const std::string& subject, const std::string& host, EVP_PKEY* key,
                       X509* issuer, EVP_PKEY* issuer_key) {
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  static long serial = 0;
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate,
                       X509_get_subject_name(issuer != nullptr ? issuer : certificate));
  if (issuer == nullptr || !host.empty()) {
    const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
    std::string value =
        issuer == nullptr ? "critical,CA:TRUE" : (is_address ? "IP:" : "DNS:") + host;
    for (std::size_t at = value.find(", "); issuer != nullptr && at != std::string::npos;
         at = value.find(", ", at + 1)) {
      value.replace(at, 2, ",DNS:");
    }
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(
        nullptr, nullptr, issuer == nullptr ? NID_basic_constraints : NID_subject_alt_name,
        value.c_str());
    require(extension != nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  require(X509_sign(certificate, issuer_key, EVP_sha256()) != 0);
  return certificate;
}

void write_certificate(const std::string& path, X509* certificate) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  require(file != nullptr);
  PEM_write_X509(file, certificate);
  std::fclose(file);
}

}  // namespace

Certificates::Certificates() {
  std::string path = std::filesystem::temp_directory_path() / "weft-tls-XXXXXX";
  require(::mkdtemp(path.data()) != nullptr);
  folder_ = path;
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = make_certificate("authority", "", key, nullptr, key);
  write_certificate(authority(), certificate);
  authority_ = certificate;
  authority_key_ = key;
}

Certificates::~Certificates() {
  X509_free(static_cast<X509*>(authority_));
  EVP_PKEY_free(static_cast<EVP_PKEY*>(authority_key_));
  std::filesystem::remove_all(folder_);
}

void Certificates::make(const std::string& name, const std::string& host) const {
  make(name, host, host);
}

void Certificates::make(const std::string& name, const std::string& subject,
                        const std::string& host) const {
  EVP_PKEY* const own_key = EVP_EC_gen("P-256");
  X509* const made = make_certificate(subject, host, own_key, static_cast<X509*>(authority_),
                                      static_cast<EVP_PKEY*>(authority_key_));
  write_certificate(certificate(name), made);
  std::FILE* const file = std::fopen(key(name).c_str(), "w");
  require(file != nullptr);
  PEM_write_PrivateKey(file, own_key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(made);
  EVP_PKEY_free(own_key);
}

void Certificates::encrypt_key(const std::string& name) const {
  std::FILE* file = std::fopen(key(name).c_str(), "r");
  require(file != nullptr);
  EVP_PKEY* const own_key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  require(own_key != nullptr);
  file = std::fopen(key(name).c_str(), "w");
  require(file != nullptr);
  constexpr std::array<unsigned char, 6> kPassword = {'s', 'e', 'c', 'r', 'e', 't'};
  PEM_write_PrivateKey(file, own_key, EVP_aes_128_cbc(), kPassword.data(), kPassword.size(),
                       nullptr, nullptr);
  std::fclose(file);
  EVP_PKEY_free(own_key);
}

}  // namespace weft::test
