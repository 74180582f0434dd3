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

// If unset, the first three options come from $RES_OPTIONS, /etc/resolv.conf or c-ares.
struct ResolverOptions {
  // The name servers, in the order in which they are tried.
  std::vector<net::Address> servers = {};
  // The timeout of the first attempt at a server; later attempts have longer timeouts.
  std::chrono::milliseconds attempt_time{0};
  // The number of attempts at each server before the lookup fails with EAI_AGAIN.
  int attempts = 0;
  // How long a lookup waits for IPv4 addresses after IPv6 addresses have arrived, or the reverse.
  // RFC 8305 suggests 50 ms. After the delay, dial() connects while it looks up the other family.
  std::chrono::nanoseconds resolution_delay = std::chrono::milliseconds(50);
};

// Queries name servers with c-ares. Only the caller waits, and a fiber blocks no thread. Therefore,
// no thread pool limits the number of queries, and a cancelled query ends at once. Before a query,
// the call reads /etc/hosts on the caller's thread. Only net::Resolver uses the other sources of
// the system's resolver (mDNS, LDAP, systemd's containers).
// Context: fibers and plain threads of a runtime; resolve() and resolve_rest() park.
// Errors: Errc::no_runtime; the errors of AnyResolver::resolve() except Errc::full.
// Throws: std::bad_alloc.
class Resolver final : public net::AnyResolver {
 public:
  // Makes a resolver without opening a socket.
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
