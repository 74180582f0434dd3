// From names to connections.
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

// The answers of getaddrinfo (EAI_NONAME, ...), as error codes. From anywhere; neither parks,
// throws nor synchronizes.
[[nodiscard]] const std::error_category& resolver_category() noexcept;

// Turns names into addresses, for dial() too: Resolver does it in the system's way, dns::Resolver
// of weft-dns without threads that wait, or a program's own. Many callers may use one at once.
// Calls throw and synchronize where they say so.
class AnyResolver {
 public:
  AnyResolver(const AnyResolver&) = delete;
  AnyResolver& operator=(const AnyResolver&) = delete;
  // No caller may be asking.
  virtual ~AnyResolver() = default;

  // The addresses of `host` with `port`, the best ones first, each once. An IP address is its own,
  // without a question. From fibers and plain threads; parks. Errors: resolver_category()'s;
  // Errc::timed_out, cancelled; Errc::full, where the resolver has a limit; invalid_argument for a
  // host with a zero inside.
  Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                       const Until& until = {});
  // Addresses of `host` that resolve() has not waited for: of the kind, IPv6 or IPv4, of which its
  // answer, `found`, has none. Empty if there are none, or the resolver waits for both kinds.
  // From fibers and plain threads; parks. Errors: as resolve().
  Result<std::vector<Address>> resolve_rest(std::string_view host, std::span<const Address> found,
                                            const Until& until = {});

 protected:
  AnyResolver() = default;
  // resolve(), for a `host` that is no IP address; the answer may be empty, or have one twice.
  virtual Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port,
                                               const Until& until) = 0;
  // resolve_rest(), for a `host` that is no IP address, where all that was found is of one kind.
  virtual Result<std::vector<Address>> look_up_rest(const std::string& host,
                                                    std::span<const Address> found,
                                                    const Until& until);
};

struct ResolverOptions {
  // Threads that ask the system's resolver at once, and questions that wait for one.
  std::size_t max_threads = 8;
  std::size_t max_waiting = 1024;
  // A thread without work ends after this long.
  std::chrono::nanoseconds idle_time = std::chrono::seconds(10);
};

// Looks names up as the system does (getaddrinfo: /etc/hosts, DNS, ...), on threads of its own: a
// name server that does not answer keeps only these waiting. An answer for which no caller waits
// any more is dropped when it comes. Its end waits for the questions that are being asked, as a
// BlockingGroup's does for its calls. Call it from fibers and plain threads. Calls park, throw and
// synchronize where they say so.
class Resolver final : public AnyResolver {
 public:
  // Starts no thread yet; the first questions do.
  explicit Resolver(const ResolverOptions& options = {});

  // Each number may be stale when they return. From anywhere; never parks.
  [[nodiscard]] BlockingGroupStats stats() const noexcept { return group_.stats(); }

  // The one that calls without one use. It lives as long as the process, and its threads end after
  // a second without work.
  [[nodiscard]] static Resolver& shared();

 private:
  Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port,
                                       const Until& until) override;

  BlockingGroup group_;
};

// "host:port", "[::1]:80": a name or an address, and a port from 0 to 65535.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
// std::errc::invalid_argument for everything else. From anywhere; neither parks nor synchronizes.
// Throws std::bad_alloc.
Result<HostPort> parse_host_port(std::string_view text);

// As AnyResolver::resolve() of `resolver`, or of Resolver::shared() if it is null. Parks.
Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                     const Until& until = {}, AnyResolver* resolver = nullptr);

struct DialOptions {
  // How long an attempt has before the next address is tried alongside it (RFC 8305: 250 ms).
  std::chrono::nanoseconds attempt_delay = std::chrono::milliseconds(250);
  // The one asked for addresses of a name; it must live as long as the call. Null: as resolve().
  AnyResolver* resolver = nullptr;
};

// Connects to the first of `addresses` that answers ("happy eyeballs"): in their order, but IPv6
// and IPv4 alternately; the next attempt begins when one has failed, or has had attempt_delay.
// Attempts that lose are closed. From fibers and plain threads of a runtime; parks. Errors: the
// first attempt's, if all fail; Errc::timed_out, cancelled; invalid_argument without an address.
// Throws std::bad_alloc; synchronizes with nothing.
Result<TcpStream> dial(std::span<const Address> addresses, const Until& until = {},
                       const DialOptions& options = {});
// The same with the addresses of a name: "example.org:443". If they are of one kind, IPv6 or IPv4,
// the other kind's are asked for meanwhile, and tried, too. Further errors: as resolve().
Result<TcpStream> dial(std::string_view host_port, const Until& until = {},
                       const DialOptions& options = {});

}  // namespace weft::net
