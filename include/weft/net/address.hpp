// Represents the IP address and the port of one end of a connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <weft/net/result.hpp>

namespace weft::net {

// Holds an IPv4 or IPv6 address and a port. An Address never looks up a host name.
// Context: plain value.
class Address {
 public:
  // Makes the address 0.0.0.0:0.
  Address() noexcept : Address(any_v4(0)) {}

  // Returns the IPv4 address of all interfaces, 0.0.0.0.
  [[nodiscard]] static Address any_v4(std::uint16_t port) noexcept;
  // Returns the IPv6 address of all interfaces, "[::]".
  [[nodiscard]] static Address any_v6(std::uint16_t port) noexcept;
  // Returns the IPv4 loopback address, 127.0.0.1. If `port` is 0, a listener gets a free port.
  [[nodiscard]] static Address loopback_v4(std::uint16_t port) noexcept;
  // Returns the IPv6 loopback address, "[::1]".
  [[nodiscard]] static Address loopback_v6(std::uint16_t port) noexcept;

  // Parses "127.0.0.1:8080", "[::1]:80" or "[fe80::1%2]:80"; a scope is an interface's number or
  // name. Returns std::errc::invalid_argument for any other text.
  static Result<Address> parse(std::string_view text);
  // Returns text that parse() accepts, with a numeric scope.
  [[nodiscard]] std::string to_string() const;

  // Returns true for an IPv6 address, false for IPv4.
  [[nodiscard]] bool is_v6() const noexcept;
  // Returns the port in the byte order of this machine.
  [[nodiscard]] std::uint16_t port() const noexcept;
  // Returns the address with another port.
  [[nodiscard]] Address with_port(std::uint16_t port) const noexcept;

  friend bool operator==(const Address& left, const Address& right) noexcept;

  // Returns the sockaddr_in or sockaddr_in6, for system calls that weft does not wrap.
  [[nodiscard]] const void* system_data() const noexcept { return storage_.data(); }
  // Returns the size of system_data() in bytes.
  [[nodiscard]] std::size_t system_size() const noexcept;
  // Converts a sockaddr. Returns std::errc::address_family_not_supported for any other data.
  static Result<Address> from_system(const void* data, std::size_t size) noexcept;

 private:
  // The size of a sockaddr_in6; the source file checks this.
  static constexpr std::size_t kStorage = 28;

  // Selects the constructor that only fills the storage with zeros.
  struct Blank {};
  explicit Address(Blank) noexcept {}

  alignas(std::uint32_t) std::array<std::byte, kStorage> storage_{};
};

}  // namespace weft::net
