// The system calls about sockets.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libs/sim/races.hpp"
#include "libs/sim/run_state.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

using io::CallResult;

namespace {

bool is_full(const std::map<std::uint32_t, std::size_t>& limits, std::uint32_t host,
             std::size_t open) {
  const auto limit = limits.find(host);
  return limit != limits.end() && open >= limit->second;
}

}  // namespace

CallResult Wires::open_socket(int family, int type) noexcept {
  if (family != AF_INET && family != AF_INET6 && family != AF_UNIX) return {0, EAFNOSUPPORT};
  const std::uint32_t host = run_.current_host();
  if (is_full(limits_, host, open_sockets(host))) return {0, EMFILE};
  return {make_socket(host, family, type & (SOCK_STREAM | SOCK_DGRAM)).descriptor, 0};
}

CallResult Wires::open_pair(std::array<int, 2>& ends) noexcept {
  const std::uint32_t host = run_.current_host();
  if (is_full(limits_, host, open_sockets(host) + 1)) return {0, EMFILE};
  Socket& first = make_socket(host, AF_UNIX, SOCK_STREAM);
  Socket& second = make_socket(host, AF_UNIX, SOCK_STREAM);
  join(first, second);
  first.state = Socket::State::connected;
  ends = {first.descriptor, second.descriptor};
  return {};
}

CallResult Wires::bind(int descriptor, const sockaddr* address) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  Place place;
  if (!to_place(address, socket->host, place) || place.host != socket->host) {
    return {0, EADDRNOTAVAIL};
  }
  // A socket that is bound to all addresses counts as bound to the address of its host.
  place.is_loopback = place.is_loopback && !place.path.empty();
  if (!occupy(*socket, std::move(place))) return {0, EADDRINUSE};
  socket->state = Socket::State::bound;
  return {};
}

CallResult Wires::listen(int descriptor, int backlog) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  if (socket->state == Socket::State::fresh && !occupy(*socket, {socket->host, 0, false, {}})) {
    return {0, EADDRINUSE};
  }
  socket->state = Socket::State::listening;
  socket->backlog = static_cast<std::size_t>(std::clamp(backlog, 1, 4096));
  run_.note(socket->host, "listens on " + words(socket->local));
  return {};
}

CallResult Wires::accept(int descriptor) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  if (socket->state != Socket::State::listening) return {0, EINVAL};
  if (socket->waiting.empty()) return {0, EAGAIN};
  if (is_full(limits_, socket->host, open_sockets(socket->host))) return {0, EMFILE};
  const int accepted = socket->waiting.front();
  socket->waiting.pop_front();
  if (const Socket* found = find(accepted)) receives(&chance(found->peer.host, found->host));
  return {accepted, 0};
}

CallResult Wires::connect(int descriptor, const sockaddr* address) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  switch (socket->state) {
    case Socket::State::connecting:
      return {0, EALREADY};
    case Socket::State::connected:
      if (socket->is_stream()) return {0, EISCONN};
      break;
    case Socket::State::failed:
      return {0, socket->error != 0 ? std::exchange(socket->error, 0) : ECONNABORTED};
    case Socket::State::listening:
      return {0, EISCONN};
    case Socket::State::fresh:
    case Socket::State::bound:
      break;
  }
  Place peer;
  if (!to_place(address, socket->host, peer)) return {0, ENETUNREACH};
  const bool needs_name = socket->state == Socket::State::fresh && socket->family != AF_UNIX;
  if (needs_name && !occupy(*socket, {socket->host, 0, false, {}})) return {0, EADDRNOTAVAIL};
  socket->local.is_loopback = peer.is_loopback;
  socket->peer = std::move(peer);
  sends(&chance(socket->host, socket->peer.host));
  if (!socket->is_stream()) {
    socket->state = Socket::State::connected;
    return {};
  }
  if (socket->family == AF_UNIX) return connect_on_host(*socket);
  socket->state = Socket::State::connecting;
  ask_to_connect(descriptor, 0);
  return {0, EINPROGRESS};
}

CallResult Wires::receive(int descriptor, msghdr& message) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  return socket->is_stream() ? receive_bytes(*socket, message) : receive_datagram(*socket, message);
}

CallResult Wires::send(int descriptor, const msghdr& message) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  if (message.msg_controllen != 0) {
    run_.fail("sendmsg() with descriptors (SCM_RIGHTS) is refused in a simulation");
    return {0, EPERM};
  }
  return socket->is_stream() ? send_bytes(*socket, message) : send_datagram(*socket, message);
}

CallResult Wires::shut_down(int descriptor, int how) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  if (socket->connection == nullptr || socket->was_reset) return {0, ENOTCONN};
  if (how != SHUT_RD && !std::exchange(socket->has_ended_writes, true)) {
    sends(&socket->out());
    transmit(socket->connection, 1 - socket->end, Segment::Kind::end, {});
  }
  if (how != SHUT_WR) socket->has_ended_reads = true;
  edge(*socket, readiness(*socket));
  return {};
}

CallResult Wires::set_option(int descriptor, int level, int name,
                             std::span<const std::byte> value) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  if (level != SOL_SOCKET) return {};
  int number = 0;
  std::memcpy(&number, value.data(), std::min(value.size(), sizeof number));
  if (name == SO_REUSEPORT) socket->shares_port = number != 0;
  if (name == SO_SNDBUF) socket->room = static_cast<std::size_t>(std::max(number, 2048)) * 2;
  if (name == SO_LINGER && value.size() >= sizeof(linger)) {
    linger wanted{};
    std::memcpy(&wanted, value.data(), sizeof wanted);
    socket->resets_on_close = wanted.l_onoff != 0 && wanted.l_linger == 0;
  }
  return {};
}

CallResult Wires::get_option(int descriptor, int level, int name,
                             std::span<std::byte> value) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  std::ranges::fill(value, std::byte{0});
  if (level == SOL_SOCKET && name == SO_ERROR && value.size() >= sizeof(int)) {
    const int error = std::exchange(socket->error, 0);
    std::memcpy(value.data(), &error, sizeof error);
  }
  return {};
}

CallResult Wires::name_of(int descriptor, sockaddr_storage& name, socklen_t& size) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  to_system(socket->local, socket->family, name, size);
  return {};
}

CallResult Wires::peer_of(int descriptor, sockaddr_storage& name, socklen_t& size) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return {0, EBADF};
  if (socket->state != Socket::State::connected) return {0, ENOTCONN};
  to_system(socket->peer, socket->family, name, size);
  return {};
}

void Wires::close(int descriptor) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return;
  if (tells_of_close_) tells_of_close_(*socket);
  leave_place(*socket);
  close_stream(*socket, true);
  const auto waiting = std::exchange(socket->waiting, {});
  sockets_.erase(descriptor);
  for (const int each : waiting) {
    if (Socket* accepted = find(each)) accepted->resets_on_close = true;
    close(each);
  }
}

void Wires::end_host(std::uint32_t host, bool has_power) {
  if (!has_power) dark_.insert(host);
  std::vector<int> open;
  for (const auto& [descriptor, socket] : sockets_) {
    if (socket->host == host) open.push_back(descriptor);
  }
  for (const int descriptor : open) {
    Socket* socket = find(descriptor);
    if (socket == nullptr) continue;
    if (!has_power && socket->is_stream()) close_stream(*socket, false);
    close(descriptor);
  }
}

}  // namespace weft::sim
