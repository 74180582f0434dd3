// Selects the certificate of a server that has several names.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "libs/tls/openssl.hpp"

namespace weft::tls {

// Selects the OpenSSL context for a client that requests a name: the first whose certificate is for
// that name or, if there is none, for all names of its level ("*.example.com"). The default context
// owns the other contexts, so they live as long as its connections.
class NamedContexts {
 public:
  // Registers `context` under the names in its certificate. Returns an error if the certificate has
  // no name.
  [[nodiscard]] std::error_code add(ContextPtr context);
  // Makes the names in the default context's certificate select the default context.
  void add_default(SSL_CTX& context);
  // Returns null for the default context, whose certificate is for the name, or if no certificate
  // is for the name.
  [[nodiscard]] SSL_CTX* find(std::string_view name) const;

  // Makes clients of `owner`'s connections get the context of the name that they request, if there
  // is one. Throws std::bad_alloc.
  static void attach(NamedContexts contexts, SSL_CTX& owner);

 private:
  // The keys are in lower case; a name for a whole level begins with "*.". Null: the default
  // context, which owns this object.
  std::map<std::string, ContextPtr, std::less<>> contexts_;
};

}  // namespace weft::tls
