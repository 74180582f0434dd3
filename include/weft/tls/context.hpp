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
  // with exactly the requested name (SNI). If there is none, the client receives the first wildcard
  // certificate for that name, or else `certificate_file`. A certificate's names are its DNS names;
  // "*.a.test" matches all names one level below "a.test".
  std::vector<Certificate> more_certificates = {};
  // Protocols in order of preference, such as "h2" or "http/1.1", of 1 to 255 bytes each. A client
  // that offers only other protocols is refused; a client that offers none is accepted.
  std::vector<std::string> alpn = {};
  // If not empty, clients must present a certificate whose chain leads to a root in this PEM file.
  std::string client_authorities_file = {};
  // The cipher suites for TLS 1.2 in OpenSSL's format, such as "ECDHE+AESGCM:AES128-SHA". Empty:
  // only suites with forward secrecy and authenticated encryption, as in RFC 9325.
  std::string cipher_list = {};
  // The largest number of handshakes that run at once. A further handshake ends the oldest with
  // Errc::too_many_handshakes, so that abandoned handshakes do not block new ones. 0 means 512 per
  // processor.
  std::size_t max_handshakes = 0;
};

// Counts a server's handshakes.
struct HandshakeStats {
  std::size_t running = 0;    // The number of handshakes in progress.
  std::uint64_t dropped = 0;  // The handshakes dropped so far to make room for newer ones.
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

// Refers to settings that connections with TLS 1.2 or 1.3 share. A server uses tickets to resume
// sessions. A client resumes the last session with the same server name.
// Context: any thread, several callers at once; calls read files and therefore block.
// Throws: std::bad_alloc.
class Context {
 public:
  // Makes an empty handle, which can only be assigned to or destroyed.
  Context() noexcept = default;
  // Makes the context of a server.
  // Errors: errors of openssl_category(), and of the system for files; Errc::encrypted_key and
  // certificate_without_name; invalid_argument for an invalid name in `alpn`; not_enough_memory.
  static net::Result<Context> server(const ServerOptions& options);
  // Makes the context of a client, which by default trusts the system's certificates.
  // Errors: the same as for server(), except Errc::certificate_without_name.
  static net::Result<Context> client(const ClientOptions& options = {});

  // Reads the files again for later connections. Earlier sessions can still be resumed, without
  // another certificate check. Returns errors as server() does; they leave the context unchanged.
  net::Result<void> reload();

  // Returns a server's handshake counts; they may be stale. The counts of a client are 0.
  // Context: any thread; the call reads no files and does not block.
  [[nodiscard]] HandshakeStats handshakes() const noexcept;

  // Returns the state that streams use.
  [[nodiscard]] const std::shared_ptr<ContextState>& state() const noexcept { return state_; }

 private:
  explicit Context(std::shared_ptr<ContextState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<ContextState> state_;
};

}  // namespace weft::tls
