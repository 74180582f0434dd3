#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <weft/channel.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/net/dial.hpp>

#include "base/thread.hpp"

namespace weft::net {

namespace {

class ResolverCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "resolver"; }
  [[nodiscard]] std::string message(int code) const override { return ::gai_strerror(code); }
};

// On a thread that may block.
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

// In their order.
void keep_each_once(std::vector<Address>& addresses) {
  auto end = addresses.begin();
  for (const Address& address : addresses) {
    if (std::find(addresses.begin(), end, address) == end) *end++ = address;
  }
  addresses.erase(end, addresses.end());
}

// IPv6 and IPv4 in turns, each in its order, beginning with the kind that stands first.
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

// Attempts to connect, side by side, each in a fiber.
class Race {
 public:
  explicit Race(std::size_t runners) : results_(runners) {}
  // Ends those that are under way.
  ~Race() { (void)stop_.request_stop(); }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  void start(const Address& address) {
    ++running_;
    runners_.push_back(spawn([this, address, token = stop_.get_token()] {
      (void)results_.send(TcpStream::connect(address, token));  // There is room for all.
    }));
  }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  // The next attempt to end; nothing if `until` was first.
  std::optional<Result<TcpStream>> next(const Until& until) {
    std::optional<Result<TcpStream>> result;
    if (results_.receive_until(result, until) == ChannelStatus::ok) --running_;
    return result;
  }

 private:
  std::stop_source stop_;
  Channel<Result<TcpStream>> results_;
  std::size_t running_ = 0;
  std::vector<JoinHandle<void>> runners_;  // Joined first: they use the others.
};

}  // namespace

const std::error_category& resolver_category() noexcept {
  static const ResolverCategory category;
  return category;
}

Resolver::Resolver(const ResolverOptions& options)
    : group_({.name = "resolve",
              .max_threads = options.max_threads,
              .max_waiting = options.max_waiting,
              .idle_time = options.idle_time}) {}

Resolver& Resolver::shared() {
  // Never destroyed: a question that is never answered must not keep the process from its end.
  static auto* const resolver = new Resolver({.idle_time = std::chrono::seconds(1)});
  return *resolver;
}

Result<std::vector<Address>> AnyResolver::resolve(std::string_view host, std::uint16_t port,
                                                  const Until& until) {
  // The system's functions, and those of libraries, would take what stands before it.
  if (host.find('\0') != std::string_view::npos) {
    return {.error = std::make_error_code(std::errc::invalid_argument)};
  }
  const std::string text(host);
  const bool is_v6 = host.find(':') != std::string_view::npos;
  const auto [literal, is_name] = Address::parse(is_v6 ? "[" + text + "]:0" : text + ":0");
  if (!is_name) return {.value = {literal.with_port(port)}};
  auto result = look_up(text, port, until);
  keep_each_once(result.value);
  if (!result.error && result.value.empty()) result.error = {EAI_NONAME, resolver_category()};
  return result;
}

Result<std::vector<Address>> Resolver::look_up(const std::string& host, std::uint16_t port,
                                               const Until& until) {
  auto [answer, error] = group_.run([host, port] { return ask_system(host, port); }, until);
  if (error) return {.error = error};
  return std::move(answer);
}

Result<std::vector<Address>> resolve(std::string_view host, std::uint16_t port, const Until& until,
                                     AnyResolver* resolver) {
  return (resolver != nullptr ? *resolver : Resolver::shared()).resolve(host, port, until);
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
  // A bracketed host is an IPv6 address, and no other is.
  if (bracketed != (host.find(':') != std::string_view::npos)) return malformed;
  result.host = host;
  return {.value = std::move(result)};
}

Result<TcpStream> dial(std::span<const Address> addresses, const Until& until,
                       const DialOptions& options) {
  if (addresses.empty()) return {.error = std::make_error_code(std::errc::invalid_argument)};
  const std::vector<Address> mixed = interleave(addresses);
  if (mixed.size() == 1) return TcpStream::connect(mixed.front(), until);
  Race race(mixed.size());
  std::error_code first_error;
  for (std::size_t started = 0;;) {
    if (started < mixed.size()) race.start(mixed[started++]);
    const bool is_last = started == mixed.size();
    const Deadline patience = is_last ? Deadline::never() : Deadline::after(options.attempt_delay);
    auto result = race.next(until.but_before(patience));
    if (result && !result->error) return std::move(*result);
    if (result && !first_error) first_error = result->error;
    if (!result && until.is_over()) {
      return {.error = until.error()};
    }
    if (is_last && race.running() == 0) return {.error = first_error};
  }
}

Result<TcpStream> dial(std::string_view host_port, const Until& until, const DialOptions& options) {
  const auto [target, malformed] = parse_host_port(host_port);
  if (malformed) return {.error = malformed};
  const auto [addresses, unknown] = resolve(target.host, target.port, until, options.resolver);
  if (unknown) return {.error = unknown};
  return dial(addresses, until, options);
}

}  // namespace weft::net
