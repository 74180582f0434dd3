// Holds a set of addresses, such as the proxies that a server trusts.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>

namespace weft::net {

// Holds networks such as "10.0.0.0/8", "2001:db8::/32" and "192.0.2.1"; "unix:" stands for all
// peers on Unix sockets. An IPv4 address in IPv6 form ("::ffff:192.0.2.1") counts as IPv4. An IPv6
// network contains no IPv4 address. contains() ignores address scopes.
// Context: plain value.
class Networks {
 public:
  // Makes an empty set.
  Networks() noexcept = default;
  // Makes a set of the networks that `texts` lists.
  // Throws: std::bad_alloc; std::invalid_argument if add() rejects one of the strings.
  Networks(std::initializer_list<std::string_view> texts);

  // Adds a network.
  // Errors: std::errc::invalid_argument if `text` is not a valid network, contains a scope, or sets
  // bits after the prefix, as in "10.1.0.0/8".
  // Throws: std::bad_alloc.
  [[nodiscard]] Result<void> add(std::string_view text);

  // Returns whether the set is empty.
  [[nodiscard]] bool empty() const noexcept { return networks_.empty() && !has_unix_; }
  // Returns whether the address is in one of the networks.
  [[nodiscard]] bool contains(const Address& address) const noexcept;
  // Returns whether a result of peer_address() is in the set. The error
  // address_family_not_supported stands for a peer on a Unix socket.
  [[nodiscard]] bool contains(const Result<Address>& peer) const noexcept;

 private:
  // A network is an address of 16 bytes, as in IPv6, and the number of leading bits that all its
  // members share.
  using Bytes = std::array<std::byte, 16>;
  struct Network {
    Bytes prefix;
    std::size_t bits;
  };
  [[nodiscard]] static Bytes bytes_of(const Address& address) noexcept;
  [[nodiscard]] static bool shares(const Bytes& left, const Bytes& right,
                                   std::size_t bits) noexcept;

  std::vector<Network> networks_;
  bool has_unix_ = false;
};

}  // namespace weft::net
