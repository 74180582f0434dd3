#include "libs/http/server/forwarded.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "libs/http/wire/list_items.hpp"
#include "libs/http/wire/media_type.hpp"

namespace weft::http {

namespace {

// Takes the first item of a list. Commas in quotes do not separate items.
std::string_view take_quoted_item(std::string_view& list) noexcept {
  bool is_quoted = false;
  std::size_t end = 0;
  for (; end < list.size() && (is_quoted || list[end] != ','); ++end) {
    if (is_quoted && list[end] == '\\' && end + 1 < list.size()) {
      ++end;
    } else if (list[end] == '"') {
      is_quoted = !is_quoted;
    }
  }
  const std::string_view item = trimmed(list.substr(0, end));
  list.remove_prefix(std::min(end + 1, list.size()));
  return item;
}

// Returns the items of all headers with this name, except empty items. `take` removes one item from
// a list.
template <class Take>
std::vector<std::string_view> items_of(std::span<const Header> headers, std::string_view name,
                                       const Take& take) {
  std::vector<std::string_view> items;
  for (const Header& header : headers) {
    if (!equal_tokens(header.name, name)) continue;
    for (std::string_view list = header.value; !list.empty();) {
      const std::string_view item = take(list);
      if (!item.empty()) items.push_back(item);
    }
  }
  return items;
}

// Parses "192.0.2.1", "192.0.2.1:4711", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:4711".
net::Result<net::Address> parse_node(std::string_view text) {
  const auto colons = std::count(text.begin(), text.end(), ':');
  const bool is_bare_v6 = colons > 1 && !text.starts_with('[');
  std::string node;
  if (is_bare_v6) node += '[';
  node += text;
  if (is_bare_v6) node += ']';
  if (colons == 0 || node.ends_with(']')) node += ":0";
  const auto [address, malformed] = net::Address::parse(node);
  if (malformed || node.find('%') != std::string::npos) {
    return {.error = std::make_error_code(std::errc::address_not_available)};
  }
  return {.value = address};
}

// Returns "http" or "https"; an empty string for any other scheme.
std::string_view known_scheme(std::string_view text) noexcept {
  for (const std::string_view scheme : {"http", "https"}) {
    if (equal_tokens(text, scheme)) return scheme;
  }
  return {};
}

// Returns the parameter `name` of an item in a Forwarded header, or an empty string if the item has
// no valid parameter of that name.
std::string parameter_of_item(std::string_view item, std::string_view name) {
  bool is_clear = true;
  std::string list(1, ';');
  list += item;
  const auto value = parameter_of(list, name, is_clear);
  return is_clear ? value.value_or("") : std::string();
}

// Calls `follow` with the index of each item, from the last to the first, while client.address is
// the address of a trusted proxy.
template <class Follow>
void walk(std::size_t count, const net::Networks& networks, ForwardedClient& client,
          const Follow& follow) {
  for (std::size_t i = count; i > 0 && networks.contains(client.address); --i) follow(i - 1);
}

}  // namespace

ForwardedClient find_client(std::span<const Header> headers, const net::Result<net::Address>& peer,
                            const TrustedProxies& trusted) {
  ForwardedClient client{.address = peer};
  if (!trusted.networks.contains(peer)) return client;
  if (trusted.headers == ForwardingHeaders::forwarded) {
    const auto items = items_of(headers, "forwarded", take_quoted_item);
    walk(items.size(), trusted.networks, client, [&](std::size_t i) {
      client.scheme = known_scheme(parameter_of_item(items[i], "proto"));
      client.address = parse_node(parameter_of_item(items[i], "for"));
    });
    return client;
  }
  // Quotes have no meaning in these headers, so a client's quote cannot hide an item that a proxy
  // has appended.
  const auto items = items_of(headers, "x-forwarded-for", take_item);
  const auto schemes = items_of(headers, "x-forwarded-proto", take_item);
  // If the numbers of schemes and addresses differ, only the last scheme counts, because the peer
  // added it.
  const bool is_parallel = schemes.size() == items.size();
  if (!schemes.empty()) client.scheme = known_scheme(schemes.back());
  walk(items.size(), trusted.networks, client, [&](std::size_t i) {
    if (is_parallel) client.scheme = known_scheme(schemes[i]);
    client.address = parse_node(items[i]);
  });
  return client;
}

}  // namespace weft::http
