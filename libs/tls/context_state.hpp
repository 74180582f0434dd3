// The state that a Context and its streams share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <variant>
#include <weft/detail/thread_mutex.hpp>
#include <weft/tls/context.hpp>

#include "libs/tls/handshake_limit.hpp"
#include "libs/tls/openssl.hpp"

namespace weft::tls {

class ContextState {
 public:
  explicit ContextState(ServerOptions options);
  explicit ContextState(ClientOptions options);

  std::error_code read_files();
  [[nodiscard]] bool is_server() const noexcept { return options_.index() == 0; }
  // Returns the limit of handshakes in a server's context.
  [[nodiscard]] HandshakeLimit& handshakes() noexcept { return handshakes_; }
  // The caller owns the result; null if there is no memory.
  [[nodiscard]] SslPtr make_ssl() const;

  // Keeps a client's session: the newest session that the server of this name has issued.
  void keep_session(const std::string& server_name, SessionPtr session);
  [[nodiscard]] SessionPtr take_session(const std::string& server_name);

 private:
  [[nodiscard]] net::Result<ContextPtr> make_server(const ServerOptions& options);
  [[nodiscard]] net::Result<ContextPtr> make_server(const ServerOptions& options,
                                                    const Certificate& certificate);
  [[nodiscard]] net::Result<ContextPtr> make_client(const ClientOptions& options);
  [[nodiscard]] std::error_code set_up_client(SSL_CTX& context, const ClientOptions& options);
  void keep_ticket_keys(SSL_CTX& context) const WEFT_REQUIRES(mutex_);
  static int choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* chosen_size,
                             const unsigned char* offered, unsigned int offered_size, void* self);
  static int note_session(SSL* ssl, SSL_SESSION* session);

  const std::variant<ServerOptions, ClientOptions> options_;
  std::string alpn_;  // Each name follows a byte with its length.
  HandshakeLimit handshakes_;
  mutable detail::ThreadMutex mutex_;
  ContextPtr context_ WEFT_GUARDED_BY(mutex_);
  std::map<std::string, SessionPtr> sessions_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::tls
