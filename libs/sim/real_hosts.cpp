#include "libs/sim/real_hosts.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "libs/sim/wires.hpp"

namespace weft::sim {

using io::CallResult;

namespace {

// 10.128.0.1, the simulated address of the first real host; the world's own hosts begin at
// 10.0.0.1.
constexpr std::uint32_t kFirstRealAddress = (10U << 24) + (128U << 16) + 1;

template <class T>
T read_as(const void* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Returns an IPv4 address, or the IPv4 address that an IPv6 address maps, in the machine's byte
// order.
std::optional<std::uint32_t> plain_v4(const sockaddr* address) noexcept {
  if (address->sa_family == AF_INET) return ntohl(read_as<sockaddr_in>(address).sin_addr.s_addr);
  if (address->sa_family != AF_INET6) return std::nullopt;
  const auto system = read_as<sockaddr_in6>(address);
  if (!IN6_IS_ADDR_V4MAPPED(&system.sin6_addr)) return std::nullopt;
  return ntohl(read_as<std::uint32_t>(&system.sin6_addr.s6_addr[12]));
}

// Returns the address without its port, as text; an empty text for other families.
std::string literal_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (const auto v4 = plain_v4(address)) {
    const in_addr network{htonl(*v4)};
    (void)::inet_ntop(AF_INET, &network, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const auto system = read_as<sockaddr_in6>(address);
    (void)::inet_ntop(AF_INET6, &system.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

// IPv4 and IPv6 addresses store the port at the same offset.
in_port_t port_of(const sockaddr* address) noexcept {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return read_as<sockaddr_in>(address).sin_port;
}

void set_port(sockaddr_storage& address, in_port_t port) noexcept {
  std::memcpy(reinterpret_cast<char*>(&address) + offsetof(sockaddr_in, sin_port), &port,
              sizeof port);
}

socklen_t size_of_family(sa_family_t family) noexcept {
  return static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
}

std::int64_t real_now() noexcept {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Found {
  sockaddr_storage system;
  socklen_t size;
};

// Resolves the name through the system. The result has each address once.
std::vector<Found> ask_system(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &first) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(first, &::freeaddrinfo);
  std::vector<Found> found;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    Found address{{}, each->ai_addrlen};
    std::memcpy(&address.system, each->ai_addr, each->ai_addrlen);
    found.push_back(address);
  }
  return found;
}

}  // namespace

RealHosts::~RealHosts() {
  for (const auto& [descriptor, connection] : sockets_) ::close(connection.system);
}

void RealHosts::let_in(std::string_view name, std::string_view address,
                       std::chrono::nanoseconds patience) {
  const std::string asked(address.empty() ? name : address);
  names_.insert_or_assign(std::string(name), Name{asked, patience.count()});
  // No lookup precedes a connect to a literal address, so this function registers the address.
  in6_addr unused{};
  const std::string text(name);
  const bool is_literal = ::inet_pton(AF_INET, text.c_str(), &unused) == 1 ||
                          ::inet_pton(AF_INET6, text.c_str(), &unused) == 1;
  if (!is_literal) return;
  for (const Found& each : ask_system(asked)) {
    literals_.insert_or_assign(text, number_of({each.system, each.size, patience.count()}));
  }
}

std::size_t RealHosts::number_of(const Address& address) {
  const auto is_same = [&](const Address& each) {
    return each.size == address.size && each.patience == address.patience &&
           std::memcmp(&each.system, &address.system, address.size) == 0;
  };
  const auto found = std::ranges::find_if(addresses_, is_same);
  if (found != addresses_.end()) return static_cast<std::size_t>(found - addresses_.begin());
  addresses_.push_back(address);
  return addresses_.size() - 1;
}

std::vector<std::uint32_t> RealHosts::look_up(const std::string& name) {
  const auto known = names_.find(name);
  if (known == names_.end()) return {};
  std::vector<std::uint32_t> found;
  for (const Found& each : ask_system(known->second.asked)) {
    const std::size_t number = number_of({each.system, each.size, known->second.patience});
    found.push_back(htonl(kFirstRealAddress + static_cast<std::uint32_t>(number)));
  }
  return found;
}

const RealHosts::Address* RealHosts::find(const sockaddr* address) const noexcept {
  if (names_.empty()) return nullptr;
  if (const auto v4 = plain_v4(address); v4 && *v4 >= kFirstRealAddress) {
    const std::size_t number = *v4 - kFirstRealAddress;
    if (number < addresses_.size()) return &addresses_[number];
  }
  const auto literal = literals_.find(literal_of(address));
  return literal == literals_.end() ? nullptr : &addresses_[literal->second];
}

CallResult RealHosts::connect(Socket& socket, const sockaddr* address) noexcept {
  const Address& target = *find(address);
  sockaddr_storage system = target.system;
  set_port(system, port_of(address));
  const auto try_connect = [&](int descriptor) {
    return io::result_of([&] {
      return ::connect(descriptor, reinterpret_cast<const sockaddr*>(&system), target.size);
    });
  };
  if (const int begun = system_of(socket.descriptor); begun >= 0) return try_connect(begun);
  const int type = socket.type | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const CallResult opened =
      io::result_of([&] { return ::socket(target.system.ss_family, type, 0); });
  if (opened.error != 0) return opened;
  const int descriptor = static_cast<int>(opened.value);
  CallResult result;
  if (socket.is_watched) result.error = watch_.watch_system(descriptor, socket.watch);
  if (result.error == 0) result = try_connect(descriptor);
  if (result.error != 0 && result.error != EINPROGRESS) {
    if (socket.is_watched) watch_.unwatch_system(descriptor);
    ::close(descriptor);
    return result;
  }
  RealConnection connection{descriptor, target.patience, {}};
  std::memcpy(&connection.peer, address, size_of_family(address->sa_family));
  sockets_.emplace(socket.descriptor, connection);
  expect_more(target.patience);
  return result;
}

CallResult RealHosts::receive(int descriptor, msghdr& message) noexcept {
  const RealConnection& connection = sockets_.at(descriptor);
  const CallResult result =
      io::result_of([&] { return ::recvmsg(connection.system, &message, MSG_CMSG_CLOEXEC); });
  if (result.error != 0) return result;
  if (result.value > 0) expect_more(connection.patience);
  if (message.msg_name != nullptr) {
    const socklen_t size = size_of_family(connection.peer.ss_family);
    message.msg_namelen = std::min(size, message.msg_namelen);
    std::memcpy(message.msg_name, &connection.peer, message.msg_namelen);
  }
  return result;
}

CallResult RealHosts::send(int descriptor, const msghdr& message) noexcept {
  const RealConnection& connection = sockets_.at(descriptor);
  // The name would be a simulated address, and a connected socket needs no name.
  msghdr unnamed = message;
  unnamed.msg_name = nullptr;
  unnamed.msg_namelen = 0;
  expect_more(connection.patience);
  return io::result_of([&] { return ::sendmsg(connection.system, &unnamed, MSG_NOSIGNAL); });
}

CallResult RealHosts::shut_down(int descriptor, int how) noexcept {
  return io::result_of([&] { return ::shutdown(system_of(descriptor), how); });
}

CallResult RealHosts::set_option(int descriptor, int level, int name,
                                 std::span<const std::byte> value) noexcept {
  const auto size = static_cast<socklen_t>(value.size());
  return io::result_of(
      [&] { return ::setsockopt(system_of(descriptor), level, name, value.data(), size); });
}

CallResult RealHosts::get_option(int descriptor, int level, int name,
                                 std::span<std::byte> value) noexcept {
  auto size = static_cast<socklen_t>(value.size());
  return io::result_of(
      [&] { return ::getsockopt(system_of(descriptor), level, name, value.data(), &size); });
}

bool RealHosts::is_gone(int descriptor) const noexcept {
  char next = 0;
  const CallResult result = io::result_of(
      [&] { return ::recv(sockets_.at(descriptor).system, &next, 1, MSG_PEEK | MSG_DONTWAIT); });
  return result.error != 0 ? !result.would_wait() : result.value == 0;
}

CallResult RealHosts::peer_of(int descriptor, sockaddr_storage& name,
                              socklen_t& size) const noexcept {
  const RealConnection& connection = sockets_.at(descriptor);
  sockaddr_storage real{};
  socklen_t real_size = sizeof real;
  const CallResult result = io::result_of([&] {
    return ::getpeername(connection.system, reinterpret_cast<sockaddr*>(&real), &real_size);
  });
  name = connection.peer;
  size = size_of_family(name.ss_family);
  return result;
}

void RealHosts::close(int descriptor) noexcept {
  const auto found = sockets_.find(descriptor);
  if (found == sockets_.end()) return;
  ::close(found->second.system);
  sockets_.erase(found);
}

void RealHosts::expect_more(std::int64_t patience) noexcept {
  const std::int64_t now = real_now();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  stands_still_until_ =
      std::max(stands_still_until_, patience > kMost - now ? kMost : now + patience);
}

std::int64_t RealHosts::wait_left() const noexcept {
  return sockets_.empty() ? 0 : stands_still_until_ - real_now();
}

}  // namespace weft::sim
