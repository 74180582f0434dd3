#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <weft/net/address.hpp>

namespace weft::net {

namespace {

Result<Address> malformed() noexcept {
  return {.error = std::make_error_code(std::errc::invalid_argument)};
}

// Parses all of `text` as a decimal number; returns false if it is not a number.
template <class Number>
bool read_number(std::string_view text, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// Returns the interface's number, or 0.
std::uint32_t read_scope(const std::string& text) noexcept {
  std::uint32_t number = 0;
  return read_number(text, number) ? number : ::if_nametoindex(text.c_str());
}

template <class System>
System as(const void* storage) noexcept {
  System address;
  std::memcpy(&address, storage, sizeof address);
  return address;
}

sockaddr_in v4(in_addr_t host, std::uint16_t port) noexcept {
  sockaddr_in system{};
  system.sin_family = AF_INET;
  system.sin_port = htons(port);
  system.sin_addr.s_addr = htonl(host);
  return system;
}

sockaddr_in6 v6(const in6_addr& host, std::uint16_t port) noexcept {
  sockaddr_in6 system{};
  system.sin6_family = AF_INET6;
  system.sin6_port = htons(port);
  system.sin6_addr = host;
  return system;
}

template <class System>
Address wrap(const System& system) noexcept {
  return Address::from_system(&system, sizeof system).value;
}

Result<Address> parse_v6(std::string_view host, std::uint16_t port) {
  const std::size_t percent = host.find('%');
  sockaddr_in6 system{};
  system.sin6_family = AF_INET6;
  system.sin6_port = htons(port);
  if (::inet_pton(AF_INET6, std::string(host.substr(0, percent)).c_str(), &system.sin6_addr) != 1) {
    return malformed();
  }
  if (percent != std::string_view::npos) {
    system.sin6_scope_id = read_scope(std::string(host.substr(percent + 1)));
    if (system.sin6_scope_id == 0) return malformed();
  }
  return {.value = wrap(system)};
}

}  // namespace

Address Address::any_v4(std::uint16_t port) noexcept { return wrap(v4(INADDR_ANY, port)); }
Address Address::loopback_v4(std::uint16_t port) noexcept {
  return wrap(v4(INADDR_LOOPBACK, port));
}
Address Address::any_v6(std::uint16_t port) noexcept { return wrap(v6(in6addr_any, port)); }
Address Address::loopback_v6(std::uint16_t port) noexcept {
  return wrap(v6(in6addr_loopback, port));
}

Result<Address> Address::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  if (colon == std::string_view::npos || !read_number(text.substr(colon + 1), port)) {
    return malformed();
  }
  // The system's functions would use the part before the zero byte.
  if (text.find('\0') != std::string_view::npos) return malformed();
  const std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    return parse_v6(host.substr(1, host.size() - 2), port);
  }
  sockaddr_in system = v4(0, port);
  if (::inet_pton(AF_INET, std::string(host).c_str(), &system.sin_addr) != 1) return malformed();
  return {.value = wrap(system)};
}

std::string Address::to_string() const {
  char host[INET6_ADDRSTRLEN] = {};
  std::string text;
  if (is_v6()) {
    const auto system = as<sockaddr_in6>(system_data());
    (void)::inet_ntop(AF_INET6, &system.sin6_addr, host, sizeof host);
    text.append("[").append(host);
    if (system.sin6_scope_id != 0) text.append("%").append(std::to_string(system.sin6_scope_id));
    text.append("]");
  } else {
    const auto system = as<sockaddr_in>(system_data());
    (void)::inet_ntop(AF_INET, &system.sin_addr, host, sizeof host);
    text.append(host);
  }
  return text.append(":").append(std::to_string(port()));
}

bool Address::is_v6() const noexcept { return as<sa_family_t>(system_data()) == AF_INET6; }

std::uint16_t Address::port() const noexcept {
  // The port is at the same place in both forms.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(as<sockaddr_in>(system_data()).sin_port);
}

Address Address::with_port(std::uint16_t port) const noexcept {
  Address changed = *this;
  const std::uint16_t network_order = htons(port);
  std::memcpy(changed.storage_.data() + offsetof(sockaddr_in, sin_port), &network_order,
              sizeof network_order);
  return changed;
}

std::size_t Address::system_size() const noexcept {
  return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

Result<Address> Address::from_system(const void* data, std::size_t size) noexcept {
  static_assert(kStorage == sizeof(sockaddr_in6) && alignof(sockaddr_in6) <= alignof(Address));
  Result<Address> result{.value = Address(Blank{})};
  sa_family_t family = AF_UNSPEC;
  if (size >= sizeof family) std::memcpy(&family, data, sizeof family);
  const bool is_v4 = family == AF_INET && size >= sizeof(sockaddr_in);
  const bool is_v6 = family == AF_INET6 && size >= sizeof(sockaddr_in6);
  if (!is_v4 && !is_v6) {
    return {.error = std::make_error_code(std::errc::address_family_not_supported)};
  }
  // A sockaddr_in ends in padding whose contents vary between systems; the padding is not copied.
  const std::size_t used = is_v4 ? offsetof(sockaddr_in, sin_zero) : sizeof(sockaddr_in6);
  std::memcpy(result.value.storage_.data(), data, used);
  return result;
}

bool operator==(const Address& left, const Address& right) noexcept {
  return left.storage_ == right.storage_;
}

}  // namespace weft::net
