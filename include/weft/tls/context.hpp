// Holds the settings that TLS connections share: certificates and trust.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include <weft/net/result.hpp>

namespace weft::tls {

// Names two PEM files: a certificate with its chain to a root, and its unencrypted key.
struct Certificate {
  std::string certificate_file;
  std::string key_file;
};

struct ServerOptions {
  // The server's certificate and key; see Certificate.
  std::string certificate_file;
  std::string key_file;
  // Further certificates, for servers with several names. A client receives the first certificate
  // with exactly the requested name (SNI), otherwise the first wildcard certificate for that name,
  // otherwise `certificate_file`. The names are the DNS names of each certificate; "*.a.test"
  // matches all names one level below "a.test".
  std::vector<Certificate> more_certificates = {};
  // Protocols in the order of preference, such as "h2" or "http/1.1", of 1 to 255 bytes each. A
  // client that offers only other protocols is refused; a client that offers none is accepted.
  std::vector<std::string> alpn = {};
  // If not empty, clients must show a certificate whose chain leads to a root in this PEM file.
  std::string client_authorities_file = {};
  // The suites of TLS 1.2 in OpenSSL's form, such as "ECDHE+AESGCM:AES128-SHA". Empty: only suites
  // with forward secrecy and authenticated encryption, as in RFC 9325.
  std::string cipher_list = {};
  // The largest number of handshakes at once. A further handshake replaces the oldest, which ends
  // with Errc::too_many_handshakes, so abandoned handshakes do not block new handshakes. 0: 512 for
  // each processor.
  std::size_t max_handshakes = 0;
};

// Counts a server's handshakes.
struct HandshakeStats {
  std::size_t running = 0;    // Handshakes that are running now.
  std::uint64_t dropped = 0;  // Handshakes dropped to admit newer handshakes, so far.
};

struct ClientOptions {
  // The PEM file of trusted roots. Empty: the system's roots.
  std::string authorities_file = {};
  std::vector<std::string> alpn = {};
  // The client's certificate, for servers that request one. Empty: none.
  std::string certificate_file = {};
  std::string key_file = {};
  std::string cipher_list = {};  // See ServerOptions::cipher_list.
};

class ContextState;

// Refers to shared settings, for TLS 1.2 and 1.3. A server resumes sessions through tickets, and a
// client does so by the server's name.
// Context: any thread, several callers at once; calls read files and so block.
// Throws: std::bad_alloc.
class Context {
 public:
  // Makes an empty handle, which can only be assigned to or destroyed.
  Context() noexcept = default;
  // Makes the context of a server.
  // Errors: openssl_category()'s; Errc::encrypted_key; Errc::certificate_without_name;
  // std::errc::invalid_argument for an invalid name in `alpn`.
  static net::Result<Context> server(const ServerOptions& options);
  // Makes the context of a client, which by default trusts the system's certificates.
  // Errors: the same as for server().
  static net::Result<Context> client(const ClientOptions& options = {});

  // Reads the files again for later connections. Earlier sessions can still be resumed, without a
  // check of a certificate. After an error, the context is unchanged.
  net::Result<void> reload();

  // Returns the counts of a server's handshakes, which may be stale; zeros for a client.
  // Context: any thread; reads no files, so does not block.
  [[nodiscard]] HandshakeStats handshakes() const noexcept;

  // Returns the state, for streams.
  [[nodiscard]] const std::shared_ptr<ContextState>& state() const noexcept { return state_; }

 private:
  explicit Context(std::shared_ptr<ContextState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<ContextState> state_;
};

}  // namespace weft::tls
