// Resolves host names, and connects to their addresses.
// Context: fibers and plain threads; all calls that resolve a name, and dial(), park.
// Throws: std::bad_alloc; dial() also throws what go() throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/blocking_group.hpp>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/until.hpp>

namespace weft::net {

// Returns the category of getaddrinfo's errors (EAI_NONAME, ...).
[[nodiscard]] const std::error_category& resolver_category() noexcept;

// Resolves host names to addresses. Resolver calls the system's resolver on its own threads;
// dns::Resolver of weft-dns needs no threads. A program may define its own resolver. Many callers
// may share a resolver.
class AnyResolver {
 public:
  AnyResolver(const AnyResolver&) = delete;
  AnyResolver& operator=(const AnyResolver&) = delete;
  // Requires that no call is in progress.
  virtual ~AnyResolver() = default;

  // Returns the addresses of `host` with `port`, the best first, without duplicates. An IP address
  // requires no lookup.
  // Errors: codes of resolver_category(); Errc::timed_out, cancelled; Errc::full if too many
  // lookups are waiting; invalid_argument for a host with a zero byte; system errors.
  Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                       const Until& until = Until::ambient());
  // Looks up the IPv4 addresses of `host` if `found` has only IPv6 addresses, and vice versa. The
  // result is empty if resolve() always waits for both kinds.
  // Errors: the same as for resolve().
  Result<std::vector<Address>> resolve_rest(std::string_view host, std::span<const Address> found,
                                            const Until& until = Until::ambient());

 protected:
  AnyResolver() = default;
  // Implements resolve() for a `host` that is not an IP address; the result may be empty or have
  // duplicates.
  virtual Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port,
                                               const Until& until) = 0;
  // Implements resolve_rest() for a `host` that is not an IP address, if all addresses in `found`
  // are IPv6 or all are IPv4.
  virtual Result<std::vector<Address>> look_up_rest(const std::string& host,
                                                    std::span<const Address> found,
                                                    const Until& until);
};

struct ResolverOptions {
  // The maximum number of threads that call the system's resolver, and the maximum number of
  // lookups that wait for such a thread.
  std::size_t max_threads = 8;
  std::size_t max_waiting = 1024;
  // The time after which an idle thread ends.
  std::chrono::nanoseconds idle_time = std::chrono::seconds(10);
};

// Resolves names as the system does (getaddrinfo: /etc/hosts, DNS, ...), on its own threads. A name
// server that does not answer blocks only these threads. A result is dropped if its caller has
// stopped waiting. The destructor waits for running lookups, as ~BlockingGroup() does.
class Resolver final : public AnyResolver {
 public:
  // Starts no thread; lookups start threads on demand.
  explicit Resolver(const ResolverOptions& options = {});

  // Returns statistics, which may be stale.
  [[nodiscard]] BlockingGroupStats stats() const noexcept { return group_.stats(); }

  // Returns the default resolver, which lives as long as the process. Its threads end after a
  // second without work.
  [[nodiscard]] static Resolver& shared();

 private:
  Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port,
                                       const Until& until) override;

  BlockingGroup group_;
};

// Holds a name or an address, and a port from 0 to 65535, such as "host:80" or "[::1]:80".
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
// Parses a HostPort. Returns std::errc::invalid_argument for any other text.
Result<HostPort> parse_host_port(std::string_view text);

// Calls resolve() on `resolver`, or on Resolver::shared() if `resolver` is null.
Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                     AnyResolver* resolver, const Until& until = Until::ambient());
Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                     const Until& until = Until::ambient());

struct DialOptions {
  // The time after which the next address is tried alongside a running attempt (RFC 8305: 250 ms).
  std::chrono::nanoseconds attempt_delay = std::chrono::milliseconds(250);
  // The resolver, which must outlive the call. Null: Resolver::shared().
  AnyResolver* resolver = nullptr;
};

// Connects to the first of `addresses` that answers ("happy eyeballs"). Alternates between IPv6 and
// IPv4 addresses, each kind in its order. An attempt begins when an earlier one fails, or
// attempt_delay after the latest began. A success ends the other attempts. A Runtime must exist.
// Errors: if all attempts fail, the error of the first failure; Errc::timed_out, cancelled if
// `until` ends; invalid_argument if there is no address.
Result<TcpStream> dial(std::span<const Address> addresses, const DialOptions& options,
                       const Until& until = Until::ambient());
Result<TcpStream> dial(std::span<const Address> addresses, const Until& until = Until::ambient());
// Resolves a host with a port, such as "example.org:443", and connects to one of its addresses. If
// dial() finds only IPv6 or only IPv4 addresses, it also looks up and tries the other kind.
// Errors: the errors of dial() above, of resolve() and of parse_host_port().
Result<TcpStream> dial(std::string_view host_port, const DialOptions& options,
                       const Until& until = Until::ambient());
Result<TcpStream> dial(std::string_view host_port, const Until& until = Until::ambient());

}  // namespace weft::net
