#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <weft/net/proxy_protocol.hpp>

namespace weft::net {

namespace {

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
// The size of "PROXY UNKNOWN\r\n"; no header is shorter.
constexpr std::size_t kShortest = 15;

std::error_code wrong_header() noexcept { return std::make_error_code(std::errc::protocol_error); }

// Reads `count` bytes from the stream, and appends them to `text`.
std::error_code append(ByteStream& stream, std::size_t count, std::string& text,
                       const Until& until) {
  const std::size_t before = text.size();
  text.resize(before + count);
  const std::span room(text.data() + before, count);
  return stream.read_exactly(std::as_writable_bytes(room), until).error;
}

std::string_view take_word(std::string_view& line) noexcept {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return word;
}

std::optional<Address> parse_end(std::string_view host, std::string_view port, bool is_v6) {
  if (host.find('%') != std::string_view::npos) return std::nullopt;
  std::string text(is_v6 ? "[" : "");
  text.append(host).append(is_v6 ? "]:" : ":").append(port);
  const auto [address, malformed] = Address::parse(text);
  if (malformed || address.is_v6() != is_v6) return std::nullopt;
  return address;
}

// Parses "PROXY TCP4 192.0.2.1 192.0.2.2 4000 80", a line without its end.
Result<ProxyHeader> parse_line(std::string_view line) {
  Result<ProxyHeader> result;
  (void)take_word(line);
  const std::string_view family = take_word(line);
  if (family == "UNKNOWN") return result;
  const bool is_v6 = family == "TCP6";
  const std::string_view from = take_word(line);
  const std::string_view to = take_word(line);
  const std::string_view from_port = take_word(line);
  result.value.source = parse_end(from, from_port, is_v6);
  result.value.destination = parse_end(to, line, is_v6);
  const bool is_known = is_v6 || family == "TCP4";
  if (!is_known || !result.value.source || !result.value.destination) {
    return {.error = wrong_header()};
  }
  return result;
}

// Returns the least number of bytes that are missing from a line that begins with `text`, so that
// no byte after the line is read.
std::size_t least_rest(std::string_view text) noexcept {
  if (text.ends_with('\r')) return 1;
  if (text.starts_with("PROXY UNKNOWN")) return 1;
  constexpr std::size_t kSpaces = 5;
  const auto spaces = static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
  const std::size_t left = kSpaces - std::min(kSpaces, spaces);
  return 2 * left + (text.ends_with(' ') ? 1 : 0) + 2;
}

Result<ProxyHeader> read_line(ByteStream& stream, std::string& text, const Until& until) {
  constexpr std::size_t kMost = 107;
  while (!text.ends_with('\n')) {
    const std::size_t count = least_rest(text);
    if (text.size() + count > kMost) return {.error = wrong_header()};
    if (const auto error = append(stream, count, text, until)) return {.error = error};
  }
  if (!text.ends_with("\r\n")) return {.error = wrong_header()};
  return parse_line(std::string_view(text).substr(0, text.size() - 2));
}

std::size_t number_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])) << 8U |
         static_cast<unsigned char>(bytes[at + 1]);
}

// Returns the address of `System`'s family whose host is at `host` and whose port is at `port`.
template <class System>
Address address_at(std::string_view bytes, std::size_t host, std::size_t port) noexcept {
  System system{};
  if constexpr (std::is_same_v<System, sockaddr_in>) {
    system.sin_family = AF_INET;
    (void)bytes.copy(reinterpret_cast<char*>(&system.sin_addr), sizeof system.sin_addr, host);
    (void)bytes.copy(reinterpret_cast<char*>(&system.sin_port), sizeof system.sin_port, port);
  } else {
    system.sin6_family = AF_INET6;
    (void)bytes.copy(reinterpret_cast<char*>(&system.sin6_addr), sizeof system.sin6_addr, host);
    (void)bytes.copy(reinterpret_cast<char*>(&system.sin6_port), sizeof system.sin6_port, port);
  }
  return Address::from_system(&system, sizeof system).value;
}

// Returns whether the extensions, each with a type and a size, show that the client uses TLS.
// Returns nothing if a size is wrong.
std::optional<bool> tells_tls(std::string_view extensions) noexcept {
  constexpr char kSsl = 0x20;
  bool is_secure = false;
  while (!extensions.empty()) {
    if (extensions.size() < 3) return std::nullopt;
    const std::size_t size = number_at(extensions, 1);
    if (extensions.size() < 3 + size) return std::nullopt;
    if (extensions[0] == kSsl) {
      if (size < 5) return std::nullopt;
      is_secure = (extensions[3] & 1) != 0;
    }
    extensions.remove_prefix(3 + size);
  }
  return is_secure;
}

// Parses the part after the first sixteen bytes of a header that describes a client's connection.
Result<ProxyHeader> parse_block(unsigned char family, std::string_view block) {
  constexpr unsigned kV4 = 1;
  constexpr unsigned kV6 = 2;
  constexpr std::array<std::size_t, 4> kSizes = {0, 12, 36, 216};
  Result<ProxyHeader> result;
  ProxyHeader& header = result.value;
  const unsigned kind = family >> 4U;
  const bool is_known = kind < kSizes.size() && (family & 0xfU) <= 2;
  // If the family is unspecified, the remaining bytes have no defined meaning.
  if (is_known && kind == 0) return result;
  if (!is_known || block.size() < kSizes.at(kind)) return {.error = wrong_header()};
  if (kind == kV4) {
    header.source = address_at<sockaddr_in>(block, 0, 8);
    header.destination = address_at<sockaddr_in>(block, 4, 10);
  } else if (kind == kV6) {
    header.source = address_at<sockaddr_in6>(block, 0, 32);
    header.destination = address_at<sockaddr_in6>(block, 16, 34);
  }
  const std::optional<bool> is_secure = tells_tls(block.substr(kSizes.at(kind)));
  if (!is_secure) return {.error = wrong_header()};
  header.is_secure = *is_secure;
  return result;
}

Result<ProxyHeader> read_binary(ByteStream& stream, std::string& text, const Until& until) {
  constexpr std::size_t kMost = 4096;
  constexpr std::size_t kFixed = 16;
  constexpr unsigned char kLocal = 0x20;
  constexpr unsigned char kForAnother = 0x21;
  if (const auto error = append(stream, kFixed - text.size(), text, until)) {
    return {.error = error};
  }
  const auto command = static_cast<unsigned char>(text[12]);
  const auto family = static_cast<unsigned char>(text[13]);
  const std::size_t size = number_at(text, 14);
  if ((command != kLocal && command != kForAnother) || size > kMost) {
    return {.error = wrong_header()};
  }
  std::string block;
  if (const auto error = append(stream, size, block, until)) return {.error = error};
  return command == kLocal ? Result<ProxyHeader>() : parse_block(family, block);
}

}  // namespace

Result<ProxyHeader> read_proxy_header(ByteStream& stream, const Until& until) {
  std::string text;
  if (const auto error = append(stream, kShortest, text, until)) return {.error = error};
  if (text.starts_with(kSignature)) return read_binary(stream, text, until);
  if (text.starts_with("PROXY ")) return read_line(stream, text, until);
  return {.error = wrong_header()};
}

}  // namespace weft::net
