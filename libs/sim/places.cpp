// The addresses of hosts, and the sockets that are bound to them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "libs/sim/run_state.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

namespace {

constexpr std::uint32_t kLoopbackNet = 127;
// The first host has the address 10.0.0.1.
constexpr std::uint32_t kFirstAddress = (10U << 24) + 1;
constexpr std::uint16_t kFirstPort = 32768;

std::uint32_t address_of(const Place& place) noexcept {
  return place.is_loopback ? INADDR_LOOPBACK : kFirstAddress + place.host;
}

// Returns the IPv4 address that an IPv6 address maps, or that corresponds to "any" or "loopback",
// in the machine's byte order.
std::optional<std::uint32_t> v4_of(const sockaddr_in6& system) noexcept {
  const in6_addr& address = system.sin6_addr;
  if (IN6_IS_ADDR_UNSPECIFIED(&address)) return INADDR_ANY;
  if (IN6_IS_ADDR_LOOPBACK(&address)) return INADDR_LOOPBACK;
  if (!IN6_IS_ADDR_V4MAPPED(&address)) return std::nullopt;
  std::uint32_t network = 0;
  std::memcpy(&network, &address.s6_addr[12], sizeof network);
  return ntohl(network);
}

}  // namespace

Wires::Key Wires::key_of(const Socket& socket, const Place& place) {
  return {place.host, socket.family == AF_UNIX ? -socket.type : socket.type, place.port,
          place.path};
}

bool Wires::to_place(const sockaddr* address, std::uint32_t from, Place& place) const {
  std::uint32_t v4 = INADDR_ANY;
  if (address->sa_family == AF_UNIX) {
    sockaddr_un system;
    std::memcpy(&system, address, sizeof system);
    place = {from, 0, true, {}};
    // An abstract name begins with a zero byte, and ends here at the next zero byte.
    const bool is_abstract = system.sun_path[0] == 0;
    const char* name = system.sun_path + (is_abstract ? 1 : 0);
    place.path.assign(1, is_abstract ? '@' : '/').append(name, strnlen(name, 107));
    return true;
  }
  if (address->sa_family == AF_INET) {
    sockaddr_in system;
    std::memcpy(&system, address, sizeof system);
    v4 = ntohl(system.sin_addr.s_addr);
    place.port = ntohs(system.sin_port);
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 system;
    std::memcpy(&system, address, sizeof system);
    const auto found = v4_of(system);
    if (!found) return false;
    v4 = *found;
    place.port = ntohs(system.sin6_port);
  } else {
    return false;
  }
  place.is_loopback = v4 >> 24 == kLoopbackNet || v4 == INADDR_ANY;
  place.host = place.is_loopback ? from : v4 - kFirstAddress;
  return place.host < run_.hosts().size();
}

void Wires::to_system(const Place& place, int family, sockaddr_storage& name, socklen_t& size) {
  name = {};
  if (family == AF_UNIX) {
    sockaddr_un system{};
    system.sun_family = AF_UNIX;
    size = offsetof(sockaddr_un, sun_path);
    if (!place.path.empty()) {
      const std::size_t skipped = place.path[0] == '@' ? 1 : 0;
      (void)place.path.copy(system.sun_path + skipped, sizeof system.sun_path - 1 - skipped, 1);
      size += static_cast<socklen_t>(skipped + place.path.size() - 1 + (skipped == 0 ? 1 : 0));
    }
    std::memcpy(&name, &system, sizeof system);
  } else if (family == AF_INET) {
    sockaddr_in system{};
    system.sin_family = AF_INET;
    system.sin_port = htons(place.port);
    system.sin_addr.s_addr = htonl(address_of(place));
    size = sizeof system;
    std::memcpy(&name, &system, sizeof system);
  } else {
    sockaddr_in6 system{};
    system.sin6_family = AF_INET6;
    system.sin6_port = htons(place.port);
    const std::uint32_t network = htonl(address_of(place));
    system.sin6_addr.s6_addr[10] = system.sin6_addr.s6_addr[11] = 0xFF;
    std::memcpy(&system.sin6_addr.s6_addr[12], &network, sizeof network);
    size = sizeof system;
    std::memcpy(&name, &system, sizeof system);
  }
}

std::string Wires::words(const Place& place) const {
  if (!place.path.empty()) return place.path;
  return run_.host(place.host).name + ":" + std::to_string(place.port);
}

// Returns false if another socket is bound there. Port 0 selects a free port.
bool Wires::occupy(Socket& socket, Place place) {
  if (place.path.empty() && place.port == 0) {
    std::uint16_t& next = next_port_.try_emplace(socket.host, kFirstPort).first->second;
    do {
      place.port = next;
      next = next == 60999 ? kFirstPort : static_cast<std::uint16_t>(next + 1);
    } while (places_.contains(key_of(socket, place)));
  }
  auto& there = places_[key_of(socket, place)];
  const auto shares = [](const Socket* each) { return each->shares_port; };
  if (!there.empty() && !(socket.shares_port && std::ranges::all_of(there, shares))) return false;
  there.push_back(&socket);
  socket.local = std::move(place);
  return true;
}

void Wires::leave_place(Socket& socket) noexcept {
  const auto found = places_.find(key_of(socket, socket.local));
  if (found == places_.end()) return;
  std::erase(found->second, &socket);
  if (found->second.empty()) places_.erase(found);
}

// Returns null if no socket is bound there, and a random socket if several share the port.
Socket* Wires::bound_at(const Socket& like, const Place& place) {
  const auto found = places_.find(key_of(like, place));
  if (found == places_.end()) return nullptr;
  const auto& there = found->second;
  return there.size() == 1 ? there[0] : there[chance(like.host, place.host).below(there.size())];
}

std::vector<std::uint32_t> Wires::look_up(const std::string& host) {
  if (host == "localhost") return {htonl(INADDR_LOOPBACK)};
  const auto number = run_.try_find_host(host);
  if (!number) return {};
  return {htonl(kFirstAddress + *number)};
}

}  // namespace weft::sim
