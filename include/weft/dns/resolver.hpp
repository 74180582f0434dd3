// Resolves names without blocking a thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <weft/net/address.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/result.hpp>
#include <weft/until.hpp>

namespace weft::dns {

// Unless set, the first three options take their values from /etc/resolv.conf or c-ares.
struct ResolverOptions {
  // The name servers, in the order of use.
  std::vector<net::Address> servers = {};
  // The timeout of the first attempt at a server; later attempts have longer timeouts.
  std::chrono::milliseconds attempt_time{0};
  // The number of attempts at each server before the answer is EAI_AGAIN.
  int attempts = 0;
  // The longest wait of IPv6 or IPv4 addresses for the other kind (RFC 8305: 50 ms). dial() waits
  // for the other kind while it already tries the first addresses.
  std::chrono::nanoseconds resolution_delay = std::chrono::milliseconds(50);
};

// Queries name servers with c-ares. The calling fiber waits for the sockets, and no thread blocks.
// Therefore, the number of queries is not limited, and an abandoned query ends at once. The fiber
// reads /etc/hosts first. Only net::Resolver uses the other sources of the system's resolver (mDNS,
// LDAP, systemd's containers).
// Context: fibers and plain threads of a runtime; resolve() and resolve_rest() park.
// Errors: the same as for AnyResolver::resolve(); Errc::no_runtime; errors of the system.
// Throws: std::bad_alloc.
class Resolver final : public net::AnyResolver {
 public:
  // Makes a resolver, which opens no socket yet.
  explicit Resolver(ResolverOptions options = {});

 private:
  net::Result<std::vector<net::Address>> look_up(const std::string& host, std::uint16_t port,
                                                 const Until& until) override;
  net::Result<std::vector<net::Address>> look_up_rest(const std::string& host,
                                                      std::span<const net::Address> found,
                                                      const Until& until) override;

  const ResolverOptions options_;
};

}  // namespace weft::dns
