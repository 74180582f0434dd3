// Names to addresses without a thread that waits.
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

// Options left at their defaults are as /etc/resolv.conf says, or as c-ares has them.
struct ResolverOptions {
  // The name servers, in the order in which they are asked.
  std::vector<net::Address> servers = {};
  // For the first answer of a server; later attempts are given longer.
  std::chrono::milliseconds attempt_time{0};
  // How often each server is asked before the answer is EAI_AGAIN.
  int attempts = 0;
  // Addresses of one kind, IPv6 or IPv4, wait this long for the answer about the other kind, and
  // are used without it then (RFC 8305: 50 ms). dial() waits for that alongside its attempts.
  std::chrono::nanoseconds resolution_delay = std::chrono::milliseconds(50);
};

// Asks name servers by c-ares: the fiber that asks waits for their sockets, and no thread does. So
// any number of questions may be open, and one that is given up is over: nothing goes on behind it.
// /etc/hosts comes first, and is read in place: a name from there needs no wait. Other sources of
// the system's resolver (mDNS, LDAP, systemd's containers) are not asked; net::Resolver does.
// Call it from fibers and plain threads of a runtime. Further errors of resolve():
// Errc::no_runtime; the system's, if it has no descriptor or no memory. Calls park, throw and
// synchronize where AnyResolver's do.
class Resolver final : public net::AnyResolver {
 public:
  // Opens nothing yet. `options` is not copied by questions: it stays as it is.
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
