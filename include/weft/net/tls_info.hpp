// Defines plain structs that describe a TLS connection and its peer; weft-tls fills them in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weft::net {

// Describes the peer's certificate.
struct PeerCertificate {
  std::string subject;  // "CN = name"
  std::vector<std::string>
      names;                   // Alternative names: "DNS:a.test", "IP:10.0.0.1", "URI:", "email:".
  std::vector<std::byte> der;  // The whole certificate, in DER.
  bool verified = false;       // Whether the certificate chain and a server's name were verified.
};

struct TlsInfo {
  std::string version;      // "TLSv1.3"
  std::string cipher;       // "TLS_AES_256_GCM_SHA384"
  std::string server_name;  // The name that the client requested (SNI), or empty.
  std::string alpn;         // The protocol that both peers agreed on (ALPN), or empty.
  std::optional<PeerCertificate> peer;
};

}  // namespace weft::net
