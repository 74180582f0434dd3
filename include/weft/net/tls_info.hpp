// Describes the encryption of a connection in plain values, which weft-tls provides.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weft::net {

// Describes the certificate of the other end.
struct PeerCertificate {
  std::string subject;  // "CN = name"
  std::vector<std::string>
      names;                   // Alternative names: "DNS:a.test", "IP:10.0.0.1", "URI:", "email:".
  std::vector<std::byte> der;  // The whole certificate, in DER.
  bool verified = false;       // Whether this end trusts the authority of the chain.
};

struct TlsInfo {
  std::string version;      // "TLSv1.3"
  std::string cipher;       // "TLS_AES_256_GCM_SHA384"
  std::string server_name;  // The name that the client requested (SNI); empty: none.
  std::string alpn;         // The agreed protocol; empty: none.
  std::optional<PeerCertificate> peer;
};

}  // namespace weft::net
