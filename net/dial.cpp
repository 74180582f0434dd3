#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <variant>
#include <weft/channel.hpp>
#include <weft/detail/first_use.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/net/dial.hpp>

#include "base/thread.hpp"
#include "io/kernel.hpp"

namespace weft::net {

namespace {

class ResolverCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "resolver"; }
  [[nodiscard]] std::string message(int code) const override { return ::gai_strerror(code); }
};
constinit detail::StaticObject<ResolverCategory> resolver_errors;

// Resolves a name through the system, on a thread that may block.
Result<std::vector<Address>> ask_system(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed == EAI_SYSTEM) return {.error = {base::last_error(), std::system_category()}};
  if (failed != 0) return {.error = {failed, resolver_category()}};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  Result<std::vector<Address>> result;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const auto [address, other] = Address::from_system(each->ai_addr, each->ai_addrlen);
    if (!other) result.value.push_back(address);
  }
  return result;
}

// Looks up the hosts of a simulation.
Result<std::vector<Address>> ask_simulation(io::Kernel& kernel, const std::string& host,
                                            std::uint16_t port) {
  std::vector<std::uint32_t> addresses;
  if (const int failed = kernel.look_up(host, addresses); failed != 0) {
    return {.error = {failed, resolver_category()}};
  }
  Result<std::vector<Address>> result;
  for (const std::uint32_t found : addresses) {
    sockaddr_in system{};
    system.sin_family = AF_INET;
    system.sin_port = htons(port);
    system.sin_addr.s_addr = found;
    result.value.push_back(Address::from_system(&system, sizeof system).value);
  }
  return result;
}

// Removes duplicates, and keeps the order of the addresses.
void keep_each_once(std::vector<Address>& addresses) {
  auto end = addresses.begin();
  for (const Address& address : addresses) {
    if (std::find(addresses.begin(), end, address) == end) *end++ = address;
  }
  addresses.erase(end, addresses.end());
}

// Alternates between IPv6 and IPv4 addresses, each in their order, starting with the family of the
// first address.
std::vector<Address> interleave(std::span<const Address> addresses) {
  std::vector<Address> first;
  std::vector<Address> second;
  for (const Address& address : addresses) {
    (address.is_v6() == addresses.front().is_v6() ? first : second).push_back(address);
  }
  std::vector<Address> mixed;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) mixed.push_back(first[i]);
    if (i < second.size()) mixed.push_back(second[i]);
  }
  return mixed;
}

// Runs the connection attempts and the lookups of a dial concurrently, each in its own fiber.
class Race {
 public:
  // A stream from an attempt, more addresses from a lookup, or an exception from either.
  using Outcome = std::variant<Result<TcpStream>, std::vector<Address>, std::exception_ptr>;

  explicit Race(std::size_t runners) : outcomes_(runners) {}
  // Ends all running fibers.
  ~Race() { (void)stop_.request_stop(); }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  // Starts a fiber for `run`, which takes a token and returns the contents of an Outcome.
  template <class Run>
  void start(Run run) {
    runners_.push_back(spawn([this, run = std::move(run), token = stop_.get_token()] {
      Outcome outcome;
      try {
        outcome = run(token);
      } catch (...) {
        outcome = std::current_exception();
      }
      (void)outcomes_.send_until(outcome, token);
    }));
    ++running_;
  }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  // Returns the next outcome, or nothing if `until` ended the wait. Throws an exception that a
  // fiber of the race has thrown.
  std::optional<Outcome> next(const Until& until) {
    std::optional<Outcome> outcome;
    if (outcomes_.receive_until(outcome, until) != ChannelStatus::ok) return outcome;
    --running_;
    if (const auto* thrown = std::get_if<std::exception_ptr>(&*outcome)) {
      std::rethrow_exception(*thrown);
    }
    return outcome;
  }

 private:
  std::stop_source stop_;
  Channel<Outcome> outcomes_;
  std::size_t running_ = 0;
  // Declared last, and therefore joined first, because the fibers use the members above.
  std::vector<JoinHandle<void>> runners_;
};

// Connects to one address: tries `addresses`, and further addresses that arrive meanwhile.
Result<TcpStream> win(Race& race, std::vector<Address> addresses, const Until& until,
                      const DialOptions& options) {
  std::error_code first_error;
  std::size_t started = 0;
  for (Deadline due = Deadline::past();;) {
    if (started < addresses.size() && due.passed()) {
      race.start([address = addresses[started++]](const std::stop_token& token) {
        return TcpStream::connect(address, token);
      });
      due = Deadline::after(options.attempt_delay);
    }
    if (race.running() == 0) return {.error = first_error};
    const bool are_all_started = started == addresses.size();
    auto outcome = race.next(until.but_before(are_all_started ? Deadline::never() : due));
    if (!outcome) {
      if (until.is_over()) return {.error = until.reason()};
    } else if (auto* late = std::get_if<std::vector<Address>>(&*outcome)) {
      late->insert(late->end(), addresses.begin() + static_cast<std::ptrdiff_t>(started),
                   addresses.end());
      addresses = interleave(*late);
      started = 0;
    } else {
      auto& attempt = std::get<Result<TcpStream>>(*outcome);
      if (!attempt.error) return std::move(attempt);
      if (!first_error) first_error = attempt.error;
      due = Deadline::past();
    }
  }
}

// Returns `host` if it is an IP address, with the port.
std::optional<Address> address_of(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  const auto [address, is_name] = Address::parse(is_v6 ? "[" + host + "]:0" : host + ":0");
  if (is_name) return {};
  return address.with_port(port);
}

// Returns whether an answer may lack some addresses.
bool may_lack_some(const std::string& host, std::span<const Address> found) {
  const auto is_like_first = [&](const Address& each) {
    return each.is_v6() == found.front().is_v6();
  };
  return std::ranges::all_of(found, is_like_first) && !address_of(host, 0);
}

// Never destroyed: a lookup that never returns must not prevent the end of the process.
constinit detail::FirstUse<Resolver> shared_resolver;

}  // namespace

const std::error_category& resolver_category() noexcept { return resolver_errors.get(); }

Resolver::Resolver(const ResolverOptions& options)
    : group_({.name = "resolve",
              .max_threads = options.max_threads,
              .max_waiting = options.max_waiting,
              .idle_time = options.idle_time}) {}

Resolver& Resolver::shared() {
  return shared_resolver.get([] {
    return std::make_unique<Resolver>(ResolverOptions{.idle_time = std::chrono::seconds(1)});
  });
}

Result<std::vector<Address>> AnyResolver::resolve(std::string_view host, std::uint16_t port,
                                                  const Until& until) {
  // The functions of the system and of libraries would use the part before the zero byte.
  if (host.find('\0') != std::string_view::npos) {
    return {.error = std::make_error_code(std::errc::invalid_argument)};
  }
  const std::string text(host);
  if (const auto address = address_of(text, port)) return {.value = {*address}};
  auto result = look_up(text, port, until);
  keep_each_once(result.value);
  if (!result.error && result.value.empty()) result.error = {EAI_NONAME, resolver_category()};
  return result;
}

Result<std::vector<Address>> AnyResolver::resolve_rest(std::string_view host,
                                                       std::span<const Address> found,
                                                       const Until& until) {
  const std::string text(host);
  if (found.empty() || !may_lack_some(text, found)) return {};
  auto result = look_up_rest(text, found, until);
  keep_each_once(result.value);
  return result;
}

Result<std::vector<Address>> AnyResolver::look_up_rest(const std::string&, std::span<const Address>,
                                                       const Until&) {
  return {};
}

Result<std::vector<Address>> Resolver::look_up(const std::string& host, std::uint16_t port,
                                               const Until& until) {
  if (io::Kernel* kernel = io::simulated_kernel()) [[unlikely]]
    return ask_simulation(*kernel, host, port);
  auto [answer, error] = group_.run([host, port] { return ask_system(host, port); }, until);
  if (error) return {.error = error};
  return std::move(answer);
}

Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                     AnyResolver* resolver, const Until& until) {
  return (resolver != nullptr ? *resolver : Resolver::shared()).resolve(host, port, until);
}
Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port,
                                     const Until& until) {
  return resolve(host, port, nullptr, until);
}

Result<HostPort> parse_host_port(std::string_view text) {
  const Result<HostPort> malformed{.error = std::make_error_code(std::errc::invalid_argument)};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return malformed;
  if (text.find('\0') != std::string_view::npos) return malformed;
  HostPort result;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc{} || end != port.data() + port.size()) return malformed;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // A host in brackets must be an IPv6 address.
  if (bracketed != (host.find(':') != std::string_view::npos)) return malformed;
  result.host = host;
  return {.value = std::move(result)};
}

Result<TcpStream> dial(std::span<const Address> addresses, const DialOptions& options,
                       const Until& until) {
  if (addresses.empty()) return {.error = std::make_error_code(std::errc::invalid_argument)};
  if (addresses.size() == 1) return TcpStream::connect(addresses.front(), until);
  Race race(addresses.size());
  return win(race, interleave(addresses), until, options);
}

Result<TcpStream> dial(std::span<const Address> addresses, const Until& until) {
  return dial(addresses, DialOptions{}, until);
}

Result<TcpStream> dial(std::string_view host_port, const DialOptions& options, const Until& until) {
  const auto [target, malformed] = parse_host_port(host_port);
  if (malformed) return {.error = malformed};
  const std::string& host = target.host;
  AnyResolver& resolver = options.resolver != nullptr ? *options.resolver : Resolver::shared();
  const auto answer = resolver.resolve(host, target.port, until);
  if (answer.error) return {.error = answer.error};
  const std::vector<Address>& found = answer.value;
  if (!may_lack_some(host, found)) return dial(found, options, until);
  Race race(found.size() + 1);
  // A failed lookup adds no addresses.
  race.start([&](const std::stop_token& token) {
    return resolver.resolve_rest(host, found, token).value;
  });
  return win(race, found, until, options);
}
Result<TcpStream> dial(std::string_view host_port, const Until& until) {
  return dial(host_port, DialOptions{}, until);
}

}  // namespace weft::net
