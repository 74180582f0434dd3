// Datagrams, which may be lost, arrive twice and overtake each other.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "libs/sim/races.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

using io::CallResult;

namespace {

// A socket keeps at most this many datagrams. Further datagrams are lost.
constexpr std::size_t kMostWaiting = 256;
constexpr std::size_t kLargest = 65507;

}  // namespace

CallResult Wires::receive_datagram(Socket& socket, msghdr& message) {
  if (socket.error != 0) return {0, std::exchange(socket.error, 0)};
  if (socket.datagrams.empty()) return {0, EAGAIN};
  const Datagram datagram = std::move(socket.datagrams.front());
  socket.datagrams.pop_front();
  receives(&chance(datagram.from.host, socket.host));
  std::size_t done = 0;
  for (const iovec& piece : std::span(message.msg_iov, message.msg_iovlen)) {
    done += datagram.bytes.copy(static_cast<char*>(piece.iov_base), piece.iov_len, done);
  }
  message.msg_flags = done < datagram.bytes.size() ? MSG_TRUNC : 0;
  message.msg_controllen = 0;
  if (message.msg_name != nullptr) {
    sockaddr_storage name;
    socklen_t size = 0;
    to_system(datagram.from, socket.family, name, size);
    message.msg_namelen = std::min(size, message.msg_namelen);
    std::memcpy(message.msg_name, &name, message.msg_namelen);
  }
  return {static_cast<std::int64_t>(done), 0};
}

CallResult Wires::send_datagram(Socket& socket, const msghdr& message) {
  Place to = socket.peer;
  if (message.msg_name != nullptr) {
    if (!to_place(static_cast<const sockaddr*>(message.msg_name), socket.host, to)) {
      return {0, EHOSTUNREACH};
    }
  } else if (socket.state != Socket::State::connected) {
    return {0, EDESTADDRREQ};
  }
  const bool is_unix = socket.family == AF_UNIX;
  if (socket.state == Socket::State::fresh && !is_unix) {
    if (!occupy(socket, {socket.host, 0, to.is_loopback, {}})) return {0, EADDRINUSE};
    socket.state = Socket::State::bound;
  }
  std::string bytes;
  for (const iovec& piece : std::span(message.msg_iov, message.msg_iovlen)) {
    bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  }
  if (bytes.size() > kLargest) return {0, EMSGSIZE};
  sends(&chance(socket.host, to.host));
  const auto size = static_cast<std::int64_t>(bytes.size());
  const Socket* there = is_unix ? bound_at(socket, to) : nullptr;
  if (is_unix && there == nullptr) return {0, ECONNREFUSED};
  if (is_unix && there->datagrams.size() >= kMostWaiting) return {0, EAGAIN};
  if (is_lost(socket.host, to.host)) return {size, 0};
  const bool comes_twice =
      socket.host != to.host && chance(socket.host, to.host).is_true(weather_.duplication);
  // The event gets a copy, as the socket may be closed when the datagram arrives.
  Socket like;
  like.family = socket.family;
  like.type = socket.type;
  like.host = socket.host;
  Place from = socket.local;
  from.is_loopback = to.is_loopback;
  // There is no network between Unix sockets, and the sender sees a lack of room.
  if (is_unix) {
    datagram_arrives(like, to, {from, std::move(bytes)});
    return {size, 0};
  }
  for (int copy = 0; copy < (comes_twice ? 2 : 1); ++copy) {
    at(now() + latency(socket.host, to.host), [this, like, to, from, bytes] {
      if (reaches(like.host, to.host)) datagram_arrives(like, to, {from, bytes});
    });
  }
  return {size, 0};
}

void Wires::datagram_arrives(const Socket& like, const Place& to, Datagram datagram) {
  Socket* socket = bound_at(like, to);
  if (socket == nullptr || socket->datagrams.size() >= kMostWaiting) return;
  // A connected socket receives only from its peer.
  const bool is_stranger =
      socket->state == Socket::State::connected &&
      (socket->peer.host != datagram.from.host || socket->peer.port != datagram.from.port);
  if (is_stranger) return;
  socket->datagrams.push_back(std::move(datagram));
  edge(*socket, EPOLLIN);
}

}  // namespace weft::sim
