#include <weft/tls/context.hpp>

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <utility>
#include <weft/detail/guard.hpp>
#include <weft/pool_options.hpp>
#include <weft/tls/error.hpp>

#include "libs/tls/context_state.hpp"
#include "libs/tls/named_contexts.hpp"
#include "libs/tls/stream_state.hpp"
#include "libs/tls/wire.hpp"

namespace weft::tls {

namespace {

// RFC 9325, 4.1 and 4.2: neither static RSA, nor CBC, nor ephemeral keys in prime fields.
constexpr const char* kGoodCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

// Returns whether every name fits a length of one byte.
bool are_names(const std::vector<std::string>& protocols) noexcept {
  return std::all_of(protocols.begin(), protocols.end(), [](const std::string& protocol) {
    return !protocol.empty() && protocol.size() <= 255;
  });
}

// A handshake takes some tenths of a millisecond of CPU time, so the newest handshake waits for at
// most a fraction of a second.
std::size_t most_handshakes(std::size_t option) noexcept {
  return option != 0 ? option : 512 * detail::processors();
}

std::string wire_form(const std::vector<std::string>& protocols) {
  std::string text;
  for (const std::string& protocol : protocols) {
    text += static_cast<char>(protocol.size());
    text += protocol;
  }
  return text;
}

const unsigned char* bytes_of(const std::string& text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Without this callback, OpenSSL would prompt for the password on the terminal.
int refuse_password(char* /*room*/, int /*size*/, int /*writes*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

std::error_code use_certificate(SSL_CTX& context, const std::string& certificate,
                                const std::string& key) {
  bool asked = false;
  SSL_CTX_set_default_passwd_cb(&context, &refuse_password);
  SSL_CTX_set_default_passwd_cb_userdata(&context, &asked);
  const bool used = SSL_CTX_use_certificate_chain_file(&context, certificate.c_str()) == 1 &&
                    SSL_CTX_use_PrivateKey_file(&context, key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                    SSL_CTX_check_private_key(&context) == 1;
  // OpenSSL requests no password after this call.
  SSL_CTX_set_default_passwd_cb_userdata(&context, nullptr);
  if (used) return {};
  const std::error_code error = take_error();
  return asked ? make_error_code(Errc::encrypted_key) : error;
}

// Makes a context with the settings that servers and clients share.
net::Result<ContextPtr> make_context(const SSL_METHOD& method, const std::string& ciphers) {
  ContextPtr context(SSL_CTX_new(&method));
  if (context == nullptr) return {.error = take_error()};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Disabled, because a stream could not write during a renegotiation.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  const char* const list = ciphers.empty() ? kGoodCiphers : ciphers.c_str();
  if (SSL_CTX_set_cipher_list(context.get(), list) != 1) return {.error = take_error()};
  return {.value = std::move(context)};
}

}  // namespace

ContextState::ContextState(ServerOptions options)
    : options_(std::move(options)),
      alpn_(wire_form(std::get<0>(options_).alpn)),
      handshakes_(most_handshakes(std::get<0>(options_).max_handshakes)) {}
ContextState::ContextState(ClientOptions options)
    : options_(std::move(options)), alpn_(wire_form(std::get<1>(options_).alpn)), handshakes_(0) {}

std::error_code ContextState::read_files() {
  ERR_clear_error();
  net::Result<ContextPtr> made =
      is_server() ? make_server(std::get<0>(options_)) : make_client(std::get<1>(options_));
  if (made.error) return made.error;
  const detail::Guard guard(mutex_);
  if (is_server() && context_ != nullptr) keep_ticket_keys(*made.value);
  context_ = std::move(made.value);
  return {};
}

net::Result<ContextPtr> ContextState::make_server(const ServerOptions& options) {
  net::Result<ContextPtr> made = make_server(options, {options.certificate_file, options.key_file});
  if (made.error || options.more_certificates.empty()) return made;
  NamedContexts contexts;
  contexts.add_default(*made.value);
  for (const Certificate& certificate : options.more_certificates) {
    net::Result<ContextPtr> other = make_server(options, certificate);
    if (other.error) return other;
    if (const auto error = contexts.add(std::move(other.value))) return {.error = error};
  }
  NamedContexts::attach(std::move(contexts), *made.value);
  return made;
}

net::Result<ContextPtr> ContextState::make_server(const ServerOptions& options,
                                                  const Certificate& certificate) {
  net::Result<ContextPtr> made = make_context(*TLS_server_method(), options.cipher_list);
  if (made.error) return made;
  SSL_CTX& context = *made.value;
  if (const auto error =
          use_certificate(context, certificate.certificate_file, certificate.key_file)) {
    return {.error = error};
  }
  SSL_CTX_set_options(&context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  constexpr std::array<unsigned char, 4> kId = {'w', 'e', 'f', 't'};
  SSL_CTX_set_session_id_context(&context, kId.data(), kId.size());
  if (!alpn_.empty()) SSL_CTX_set_alpn_select_cb(&context, &choose_protocol, this);
  if (options.client_authorities_file.empty()) return made;
  const char* const file = options.client_authorities_file.c_str();
  if (SSL_CTX_load_verify_locations(&context, file, nullptr) != 1) return {.error = take_error()};
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(file);
  if (names == nullptr) return {.error = take_error()};
  SSL_CTX_set_client_CA_list(&context, names);  // The context owns the names now.
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return made;
}

net::Result<ContextPtr> ContextState::make_client(const ClientOptions& options) {
  net::Result<ContextPtr> made = make_context(*TLS_client_method(), options.cipher_list);
  if (made.error) return made;
  if (const auto error = set_up_client(*made.value, options)) return {.error = error};
  return made;
}

std::error_code ContextState::set_up_client(SSL_CTX& context, const ClientOptions& options) {
  const int trusts =
      options.authorities_file.empty()
          ? SSL_CTX_set_default_verify_paths(&context)
          : SSL_CTX_load_verify_locations(&context, options.authorities_file.c_str(), nullptr);
  if (trusts != 1) return take_error();
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  if (!options.certificate_file.empty()) {
    const auto error = use_certificate(context, options.certificate_file, options.key_file);
    if (error) return error;
  }
  // For this function, unlike all others, 0 means success.
  if (!alpn_.empty() && SSL_CTX_set_alpn_protos(&context, bytes_of(alpn_),
                                                static_cast<unsigned int>(alpn_.size())) != 0) {
    return take_error();
  }
  SSL_CTX_set_session_cache_mode(&context,
                                 SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(&context, &note_session);
  return {};
}

// Tickets of the old context remain valid in the new context.
void ContextState::keep_ticket_keys(SSL_CTX& context) const {
  std::array<unsigned char, 80> keys;
  if (SSL_CTX_get_tlsext_ticket_keys(context_.get(), keys.data(), keys.size()) == 1) {
    (void)SSL_CTX_set_tlsext_ticket_keys(&context, keys.data(), keys.size());
  }
}

SslPtr ContextState::make_ssl() const {
  const detail::Guard guard(mutex_);
  return SslPtr(SSL_new(context_.get()));
}

int ContextState::choose_protocol(SSL* /*ssl*/, const unsigned char** chosen,
                                  unsigned char* chosen_size, const unsigned char* offered,
                                  unsigned int offered_size, void* self) {
  const std::string& ours = static_cast<ContextState*>(self)->alpn_;
  unsigned char* found = nullptr;
  const int outcome =
      SSL_select_next_proto(&found, chosen_size, bytes_of(ours),
                            static_cast<unsigned int>(ours.size()), offered, offered_size);
  *chosen = found;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Returning 1 takes ownership of the session. OpenSSL cannot handle exceptions; without memory the
// session is not kept.
int ContextState::note_session(SSL* ssl, SSL_SESSION* session) {
  auto* const stream = static_cast<StreamState*>(SSL_get_app_data(ssl));
  SessionPtr ours(session);
  try {
    stream->context().keep_session(stream->server_name(), std::move(ours));
  } catch (const std::bad_alloc&) {
    return 1;
  }
  return 1;
}

void ContextState::keep_session(const std::string& server_name, SessionPtr session) {
  constexpr std::size_t kMost = 1024;
  const detail::Guard guard(mutex_);
  if (sessions_.size() >= kMost) sessions_.clear();
  sessions_[server_name] = std::move(session);
}

SessionPtr ContextState::take_session(const std::string& server_name) {
  const detail::Guard guard(mutex_);
  const auto found = sessions_.find(server_name);
  if (found == sessions_.end()) return nullptr;
  SessionPtr session = std::move(found->second);
  sessions_.erase(found);  // A ticket of TLS 1.3 may be used only once.
  return session;
}

net::Result<Context> Context::server(const ServerOptions& options) {
  if (!are_names(options.alpn)) return {.error = std::make_error_code(std::errc::invalid_argument)};
  auto state = std::make_shared<ContextState>(options);
  if (const auto error = state->read_files()) return {.error = error};
  return {.value = Context(std::move(state))};
}

net::Result<Context> Context::client(const ClientOptions& options) {
  if (!are_names(options.alpn)) return {.error = std::make_error_code(std::errc::invalid_argument)};
  auto state = std::make_shared<ContextState>(options);
  if (const auto error = state->read_files()) return {.error = error};
  return {.value = Context(std::move(state))};
}

HandshakeStats Context::handshakes() const noexcept { return state_->handshakes().stats(); }

net::Result<void> Context::reload() { return state_->read_files(); }

}  // namespace weft::tls
