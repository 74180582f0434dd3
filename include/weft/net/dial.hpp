// Connections by name.
// Context: fibers and plain threads; resolve(), its forms and dial() park.
// Throws: std::bad_alloc; dial() also as go().
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

// Returns the category of getaddrinfo's answers (EAI_NONAME, ...).
[[nodiscard]] const std::error_category& resolver_category() noexcept;

// Resolves names to addresses, also for dial(). Resolver uses the system, dns::Resolver of weft-dns
// needs no waiting threads, and a program may provide its own. Many callers may use it at once.
class AnyResolver {
 public:
  AnyResolver(const AnyResolver&) = delete;
  AnyResolver& operator=(const AnyResolver&) = delete;
  // No caller may be resolving.
  virtual ~AnyResolver() = default;

  // Returns the addresses of `host` with `port`, the best first, without duplicates. An IP address
  // requires no lookup.
  // Errors: resolver_category()'s; Errc::timed_out, cancelled; Errc::full if the resolver has a
  // limit; invalid_argument for a host with a zero byte.
  Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                       const Until& until = Until::ambient());
  // Returns the addresses of `host` that resolve() did not wait for: of the kind, IPv6 or IPv4,
  // that `found` lacks. It is empty if there are none or resolve() waits for both kinds.
  // Errors: as resolve().
  Result<std::vector<Address>> resolve_rest(std::string_view host, std::span<const Address> found,
                                            const Until& until = Until::ambient());

 protected:
  AnyResolver() = default;
  // Does the same as resolve() for a `host` that is no IP address; the answer may be empty or have
  // duplicates.
  virtual Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port,
                                               const Until& until) = 0;
  // Does the same as resolve_rest() for a `host` that is no IP address, if all found addresses are
  // of one kind.
  virtual Result<std::vector<Address>> look_up_rest(const std::string& host,
                                                    std::span<const Address> found,
                                                    const Until& until);
};

struct ResolverOptions {
  // The largest number of threads that ask the system's resolver, and of questions that wait for
  // such a thread.
  std::size_t max_threads = 8;
  std::size_t max_waiting = 1024;
  // The time after which an idle thread ends.
  std::chrono::nanoseconds idle_time = std::chrono::seconds(10);
};

// Resolves names as the system does (getaddrinfo: /etc/hosts, DNS, ...), on its own threads. A name
// server that does not answer blocks only these threads. An answer is dropped if its caller has
// stopped waiting. The destructor waits for running questions, as a BlockingGroup's does.
class Resolver final : public AnyResolver {
 public:
  // Starts no thread; the first questions do.
  explicit Resolver(const ResolverOptions& options = {});

  // Returns figures that may be stale.
  [[nodiscard]] BlockingGroupStats stats() const noexcept { return group_.stats(); }

  // Returns the default resolver, which lives as long as the process. Its threads end after a
  // second without work.
  [[nodiscard]] static Resolver& shared();

 private:
  Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port,
                                       const Until& until) override;

  BlockingGroup group_;
};

// A name or an address, and a port from 0 to 65535: "host:port", "[::1]:80".
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
// Parses a HostPort. Returns std::errc::invalid_argument for other texts.
Result<HostPort> parse_host_port(std::string_view text);

// Does the same as AnyResolver::resolve() of `resolver`, or of Resolver::shared() for null.
Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                     AnyResolver* resolver, const Until& until = Until::ambient());
Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                     const Until& until = Until::ambient());

struct DialOptions {
  // The time of an attempt before the next address is tried alongside it (RFC 8305: 250 ms).
  std::chrono::nanoseconds attempt_delay = std::chrono::milliseconds(250);
  // The resolver, which must outlive the call. Null: as resolve().
  AnyResolver* resolver = nullptr;
};

// Connects to the first of `addresses` that answers ("happy eyeballs"). The order is kept, but IPv6
// and IPv4 alternate. An attempt begins when the previous attempt has failed or has lasted
// attempt_delay. Losing attempts are closed. Plain threads need a runtime.
// Errors: the first attempt's, if all fail; Errc::timed_out, cancelled; invalid_argument without an
// address.
Result<TcpStream> dial(std::span<const Address> addresses, const DialOptions& options,
                       const Until& until = Until::ambient());
Result<TcpStream> dial(std::span<const Address> addresses, const Until& until = Until::ambient());
// Does the same with the addresses of a name: "example.org:443". If all are IPv6 or all are IPv4,
// the other kind is resolved meanwhile and also tried.
// Errors: also as resolve().
Result<TcpStream> dial(std::string_view host_port, const DialOptions& options,
                       const Until& until = Until::ambient());
Result<TcpStream> dial(std::string_view host_port, const Until& until = Until::ambient());

}  // namespace weft::net
