#include "libs/tls/named_contexts.hpp"

#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>
#include <weft/detail/first_use.hpp>
#include <weft/tls/error.hpp>

namespace weft::tls {

namespace {

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
};

std::string in_lower_case(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character + 32) : character;
  });
  return text;
}

std::vector<std::string> names_of(X509& certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> found;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    const auto* const text = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
    const auto size = static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName));
    found.push_back(in_lower_case(std::string_view(text, size)));
  }
  return found;
}

// OpenSSL calls this function when it frees the SSL_CTX to which the NamedContexts object is
// attached.
void destroy(void* /*context*/, void* contexts, CRYPTO_EX_DATA* /*data*/, int /*index*/,
             long /*argument*/, void* /*pointer*/) {
  delete static_cast<NamedContexts*>(contexts);
}

// Returns an index, or a negative number if OpenSSL is out of memory.
int place() {
  static constinit detail::FirstUse<int> index;
  return index.get([] {
    return std::make_unique<int>(SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, &destroy));
  });
}

// A client that requests another name, or none, gets the default certificate, which it may refuse
// itself. OpenSSL cannot handle exceptions, so the handshake fails if memory is short.
int choose_context(SSL* ssl, int* /*alert*/, void* contexts) {
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  try {
    SSL_CTX* const chosen = static_cast<const NamedContexts*>(contexts)->find(name);
    if (chosen == nullptr) return SSL_TLSEXT_ERR_OK;
    return SSL_set_SSL_CTX(ssl, chosen) != nullptr ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
  } catch (const std::bad_alloc&) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
}

}  // namespace

std::error_code NamedContexts::add(ContextPtr context) {
  const std::vector<std::string> names = names_of(*SSL_CTX_get0_certificate(context.get()));
  if (names.empty()) return Errc::certificate_without_name;
  for (const std::string& name : names) {
    if (contexts_.contains(name)) continue;
    SSL_CTX_up_ref(context.get());
    contexts_.emplace(name, ContextPtr(context.get()));
  }
  return {};
}

void NamedContexts::add_default(SSL_CTX& context) {
  for (const std::string& name : names_of(*SSL_CTX_get0_certificate(&context))) {
    contexts_.try_emplace(name);
  }
}

SSL_CTX* NamedContexts::find(std::string_view name) const {
  if (name.ends_with('.')) name.remove_suffix(1);
  const std::string wanted = in_lower_case(name);
  auto found = contexts_.find(wanted);
  const std::size_t dot = wanted.find('.');
  if (found == contexts_.end() && dot != std::string::npos) {
    found = contexts_.find(std::string("*").append(wanted, dot));
  }
  return found == contexts_.end() ? nullptr : found->second.get();
}

void NamedContexts::attach(NamedContexts contexts, SSL_CTX& owner) {
  auto owned = std::make_unique<NamedContexts>(std::move(contexts));
  if (place() < 0 || SSL_CTX_set_ex_data(&owner, place(), owned.get()) != 1) throw std::bad_alloc();
  // The OpenSSL macro of that name contains a C cast.
  SSL_CTX_callback_ctrl(&owner, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                        reinterpret_cast<void (*)()>(&choose_context));
  SSL_CTX_set_tlsext_servername_arg(&owner, owned.release());
}

}  // namespace weft::tls
