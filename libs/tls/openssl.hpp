// Owners of OpenSSL's objects.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <memory>

namespace weft::tls {

template <auto free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const noexcept {
    free(object);
  }
};

using BioPtr = std::unique_ptr<BIO, FreeBy<&BIO_free_all>>;
using ContextPtr = std::unique_ptr<SSL_CTX, FreeBy<&SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, FreeBy<&SSL_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, FreeBy<&SSL_SESSION_free>>;

}  // namespace weft::tls
