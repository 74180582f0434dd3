#include "libs/http/websocket/handshake.hpp"

#include <sys/random.h>

#include <algorithm>

#include "libs/http/websocket/sha1.hpp"
#include "libs/http/wire/list_items.hpp"

namespace weft::http {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The comparison is case-sensitive, because clients compare the server's response in this way.
bool offers_protocol(std::string_view offered, std::string_view protocol) noexcept {
  while (!offered.empty()) {
    if (take_item(offered) == protocol) return true;
  }
  return false;
}

}  // namespace

std::string base64(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8U | (k < count ? bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? kAlphabet[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

std::string join_values(std::span<const Header> headers, std::string_view name) {
  std::string all;
  for (const Header& header : headers) {
    if (!equal_tokens(header.name, name)) continue;
    if (!all.empty()) all += ", ";
    all += header.value;
  }
  return all;
}

void fill_randomly(std::span<char> bytes) noexcept {
  // For so few bytes, one call always suffices.
  (void)::getrandom(bytes.data(), bytes.size(), 0);
}

std::optional<std::string> accept_key(std::string_view key) {
  constexpr std::string_view kFixed = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  constexpr std::size_t kDigits = 22;
  const bool is_key = key.size() == kDigits + 2 && key.ends_with("==") &&
                      key.find_first_not_of(kAlphabet) == kDigits;
  if (!is_key) return std::nullopt;
  return base64(sha1(std::string(key).append(kFixed)));
}

Opening check_opening(std::span<const Header> headers, std::span<const std::string> protocols) {
  constexpr int kBad = 400;
  constexpr int kUpgradeRequired = 426;
  if (!list_has(join_values(headers, "upgrade"), "websocket") ||
      join_values(headers, "sec-websocket-version") != "13") {
    return {.status = kUpgradeRequired};
  }
  const auto accept = accept_key(join_values(headers, "sec-websocket-key"));
  if (!accept) return {.status = kBad};
  Opening opening{.accept = *accept};
  opening.extensions = join_values(headers, "sec-websocket-extensions");
  const std::string offered = join_values(headers, "sec-websocket-protocol");
  for (const std::string& protocol : protocols) {
    if (!offers_protocol(offered, protocol)) continue;
    opening.protocol = protocol;
    break;
  }
  return opening;
}

}  // namespace weft::http
