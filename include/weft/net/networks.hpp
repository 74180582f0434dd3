// A set of addresses, such as the proxies that a server trusts.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>

namespace weft::net {

// The addresses of networks: "10.0.0.0/8", "2001:db8::/32", "192.0.2.1", and "unix:" for peers over
// Unix sockets, which have no address. An IPv4 address in the form of IPv6 ("::ffff:192.0.2.1") is
// that IPv4 address. No other IPv4 address is in a network of IPv6. Scopes are ignored.
// Context: plain value.
class Networks {
 public:
  // Contains no address.
  Networks() noexcept = default;
  // Contains these networks.
  // Throws: std::bad_alloc, std::invalid_argument for a text that add() refuses.
  Networks(std::initializer_list<std::string_view> texts);

  // Adds a network.
  // Errors: std::errc::invalid_argument for another text, and for an address with bits beyond the
  // length of its prefix: "10.1.0.0/8".
  // Throws: std::bad_alloc.
  [[nodiscard]] Result<void> add(std::string_view text);

  // Returns whether nothing has been added.
  [[nodiscard]] bool empty() const noexcept { return networks_.empty() && !has_unix_; }
  // Returns whether the address is in one of the networks.
  [[nodiscard]] bool contains(const Address& address) const noexcept;
  // Does the same for a result of peer_address(): the error address_family_not_supported stands for
  // a peer over a Unix socket.
  [[nodiscard]] bool contains(const Result<Address>& peer) const noexcept;

 private:
  // Sixteen bytes as in IPv6, and how many of their bits all addresses of a network share.
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
