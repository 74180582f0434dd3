// Where an end of a connection is found: an IP address and a port.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <weft/net/result.hpp>

namespace weft::net {

// An IPv4 or IPv6 address with a port. A plain value; never looks up a name, never parks.
class Address {
 public:
  // 0.0.0.0:0.
  Address() noexcept : Address(any_v4(0)) {}

  // All interfaces.
  [[nodiscard]] static Address any_v4(std::uint16_t port) noexcept;
  // All interfaces, of IPv6: "[::]".
  [[nodiscard]] static Address any_v6(std::uint16_t port) noexcept;
  // This machine only. Port 0, when listening, asks the system for a free port.
  [[nodiscard]] static Address loopback_v4(std::uint16_t port) noexcept;
  // This machine only, by IPv6: "[::1]".
  [[nodiscard]] static Address loopback_v6(std::uint16_t port) noexcept;

  // "127.0.0.1:8080", "[::1]:80", "[fe80::1%2]:80" (a scope is an interface's number or name).
  // std::errc::invalid_argument for everything else.
  static Result<Address> parse(std::string_view text);
  // A text that parse() reads. A scope is written as a number.
  [[nodiscard]] std::string to_string() const;

  // Whether it is one of IPv6, else one of IPv4.
  [[nodiscard]] bool is_v6() const noexcept;
  // A number, not in the network's order of bytes.
  [[nodiscard]] std::uint16_t port() const noexcept;
  // The same address with another port.
  [[nodiscard]] Address with_port(std::uint16_t port) const noexcept;

  friend bool operator==(const Address& left, const Address& right) noexcept;

  // The system's form, a sockaddr_in or sockaddr_in6, for calls that weft does not wrap.
  [[nodiscard]] const void* system_data() const noexcept { return storage_.data(); }
  // The size of what system_data() points to, in bytes.
  [[nodiscard]] std::size_t system_size() const noexcept;
  // std::errc::address_family_not_supported for other families.
  static Result<Address> from_system(const void* data, std::size_t size) noexcept;

 private:
  // As large as a sockaddr_in6, which the source file checks.
  static constexpr std::size_t kStorage = 28;

  // Zeros, to be filled.
  struct Blank {};
  explicit Address(Blank) noexcept {}

  alignas(std::uint32_t) std::array<std::byte, kStorage> storage_{};
};

}  // namespace weft::net
