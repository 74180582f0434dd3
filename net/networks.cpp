#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string>
#include <weft/net/networks.hpp>

namespace weft::net {

namespace {

// IPv4 addresses that are mapped to IPv6 share a prefix of this many bits.
constexpr std::size_t kMappedBits = 96;

Result<void> no_network() noexcept { return std::make_error_code(std::errc::invalid_argument); }

}  // namespace

Networks::Networks(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) {
    if (!add(text)) {
      throw std::invalid_argument("weft::net::Networks: " + std::string(text) +
                                  " is no network, such as 10.0.0.0/8, 2001:db8::1 or unix:");
    }
  }
}

Networks::Bytes Networks::bytes_of(const Address& address) noexcept {
  Bytes bytes{};
  if (address.is_v6()) {
    sockaddr_in6 system;
    std::memcpy(&system, address.system_data(), sizeof system);
    std::memcpy(bytes.data(), &system.sin6_addr, bytes.size());
  } else {
    sockaddr_in system;
    std::memcpy(&system, address.system_data(), sizeof system);
    bytes[10] = bytes[11] = std::byte{0xff};
    std::memcpy(bytes.data() + kMappedBits / 8, &system.sin_addr, sizeof system.sin_addr);
  }
  return bytes;
}

bool Networks::shares(const Bytes& left, const Bytes& right, std::size_t bits) noexcept {
  const auto whole = static_cast<std::ptrdiff_t>(bits / 8);
  if (!std::equal(left.begin(), left.begin() + whole, right.begin())) return false;
  if (bits % 8 == 0) return true;
  const std::byte differing = left[bits / 8] ^ right[bits / 8];
  return (differing >> (8 - bits % 8)) == std::byte{0};
}

Result<void> Networks::add(std::string_view text) {
  if (text == "unix:") {
    has_unix_ = true;
    return {};
  }
  const std::size_t slash = text.find('/');
  const std::string host(text.substr(0, slash));
  const bool is_v6 = host.find(':') != std::string::npos;
  const auto [address, malformed] = Address::parse(is_v6 ? "[" + host + "]:0" : host + ":0");
  if (malformed || address.is_v6() != is_v6 || host.find('%') != std::string::npos) {
    return no_network();
  }
  const std::size_t most = is_v6 ? 128 : 32;
  std::size_t bits = most;
  if (slash != std::string_view::npos) {
    const std::string_view length = text.substr(slash + 1);
    const char* const end = length.data() + length.size();
    const auto [last, wrong] = std::from_chars(length.data(), end, bits);
    if (wrong != std::errc() || last != end || bits > most) return no_network();
  }
  if (!is_v6) bits += kMappedBits;
  const Bytes prefix = bytes_of(address);
  Bytes lowest = prefix;
  for (std::size_t i = bits; i < 128; ++i) {
    lowest[i / 8] &= ~(std::byte{0x80} >> (i % 8));
  }
  if (lowest != prefix) return no_network();
  networks_.push_back({prefix, bits});
  return {};
}

bool Networks::contains(const Address& address) const noexcept {
  const Bytes bytes = bytes_of(address);
  const Bytes mapped = bytes_of(Address::any_v4(0));
  const bool is_v4 = shares(bytes, mapped, kMappedBits);
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    return (network.bits >= kMappedBits || !is_v4) && shares(bytes, network.prefix, network.bits);
  });
}

bool Networks::contains(const Result<Address>& peer) const noexcept {
  if (peer.error) return has_unix_ && peer.error == std::errc::address_family_not_supported;
  return contains(peer.value);
}

}  // namespace weft::net
