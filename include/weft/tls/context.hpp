// The common part of TLS connections: certificates, and which to trust.
#pragma once

#include <memory>
#include <string>
#include <system_error>
#include <vector>
#include <weft/net/result.hpp>

namespace weft::tls {

struct ServerOptions {
  // PEM files: the certificate and the chain from it to a root; and its key, which is not
  // encrypted.
  std::string certificate_file;
  std::string key_file;
  // Protocols in the order of preference, "h2" or "http/1.1", say. A client that offers none of
  // them is refused; one that does not ask is not. A name has 1 to 255 bytes.
  std::vector<std::string> alpn = {};
  // Not empty: clients must show a certificate that leads to one of this PEM file.
  std::string client_authorities_file = {};
  // The suites of TLS 1.2, as OpenSSL writes them: "ECDHE+AESGCM:AES128-SHA", say. Empty: only
  // suites with forward secrecy and authenticated encryption, as RFC 9325 has it.
  std::string cipher_list = {};
};

struct ClientOptions {
  // PEM file of the roots to trust. Empty: the system's.
  std::string authorities_file = {};
  std::vector<std::string> alpn = {};
  // Not empty: what to show to servers that ask for it.
  std::string certificate_file = {};
  std::string key_file = {};
  std::string cipher_list = {};  // See ServerOptions::cipher_list.
};

class ContextState;

// A handle: copies share the state. TLS 1.2 and 1.3. Sessions are resumed: a server's by tickets, a
// client's by the name of the server. Call it from anywhere, at the same time, too; calls read
// files, and so block. They throw std::bad_alloc alone, and synchronize with nothing.
class Context {
 public:
  // Empty; of no use.
  Context() noexcept = default;
  // Errors: openssl_category(); Errc::encrypted_key; std::errc::invalid_argument for a name in
  // `alpn`.
  static net::Result<Context> server(const ServerOptions& options);
  // Does the same as server(), for the side that connects; without options it believes the
  // certificates that the system does.
  static net::Result<Context> client(const ClientOptions& options = {});

  // Reads the files anew: connections that begin from now on use them, others go on as they are,
  // and earlier sessions are still resumed, without a look at a certificate. After an error all is
  // as it was.
  std::error_code reload();

  // For streams.
  [[nodiscard]] const std::shared_ptr<ContextState>& state() const noexcept { return state_; }

 private:
  explicit Context(std::shared_ptr<ContextState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<ContextState> state_;
};

}  // namespace weft::tls
