// Connections: their beginning, their data and their end.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>
#include <weft/detail/invariant.hpp>

#include "libs/sim/races.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

using io::CallResult;

namespace {

// Linux's retry times, in nanoseconds. Requests for a connection are repeated after 1, 2, 4, ...,
// 32 s. Parts of a stream are repeated 15 times, after 0.2 s, doubled up to 2 minutes.
constexpr std::int64_t kFirstRequest = 1'000'000'000;
constexpr unsigned kRequests = 7;
constexpr std::int64_t kFirstRepeat = 200'000'000;
constexpr std::int64_t kLongestRepeat = 120'000'000'000;
constexpr unsigned kRepeats = 15;
constexpr std::size_t kSegment = 16 * 1024;
// This bit and a host's number select the random numbers of the host's reads, so that reads change
// no sends.
constexpr std::uint32_t kReads = std::uint32_t{1} << 31;

std::int64_t repeat_after(unsigned tries) noexcept {
  return std::min(kFirstRepeat << std::min(tries, 20U), kLongestRepeat);
}

std::span<const iovec> pieces_of(const msghdr& message) noexcept {
  return {message.msg_iov, message.msg_iovlen};
}

}  // namespace

// --- The beginning ---

void Wires::join(Socket& client, Socket& server) {
  auto connection = std::make_shared<SimulatedConnection>();
  connection->ends = {&client, &server};
  connection->hosts = {client.host, server.host};
  client.connection = server.connection = connection;
  client.end = 0;
  server.end = 1;
  server.state = Socket::State::connected;
  server.peer = client.local;
}

void Wires::ask_to_connect(int descriptor, unsigned tries) {
  Socket* socket = find(descriptor);
  if (socket == nullptr || socket->state != Socket::State::connecting) return;
  if (tries == kRequests) {
    socket->state = Socket::State::failed;
    return reset(*socket, ETIMEDOUT);
  }
  if (is_lost(socket->host, socket->peer.host)) {
    return at(now() + (kFirstRequest << tries),
              [this, descriptor, tries] { ask_to_connect(descriptor, tries + 1); });
  }
  at(now() + latency(socket->host, socket->peer.host),
     [this, descriptor, tries] { request_arrives(descriptor, tries); });
}

void Wires::request_arrives(int descriptor, unsigned tries) {
  Socket* client = find(descriptor);
  if (client == nullptr || client->state != Socket::State::connecting) return;
  const std::uint32_t here = client->peer.host;
  Socket* listener = bound_at(*client, client->peer);
  if (listener != nullptr && listener->state != Socket::State::listening) listener = nullptr;
  const bool is_full = listener != nullptr && listener->waiting.size() >= listener->backlog;
  if (!reaches(client->host, here) || !reaches(here, client->host) || is_full) {
    return at(now() + (kFirstRequest << tries),
              [this, descriptor, tries] { ask_to_connect(descriptor, tries + 1); });
  }
  const std::int64_t answer = now() + latency(here, client->host);
  if (listener == nullptr) {
    return at(answer, [this, descriptor] {
      Socket* refused = find(descriptor);
      if (refused == nullptr) return;
      refused->state = Socket::State::failed;
      reset(*refused, ECONNREFUSED);
    });
  }
  Socket& server = make_socket(here, client->family, client->type);
  server.local = listener->local;
  server.local.is_loopback = client->peer.is_loopback;
  join(*client, server);
  listener->waiting.push_back(server.descriptor);
  edge(*listener, EPOLLIN);
  client->in().last_due = answer;  // No bytes of the server overtake the answer.
  at(answer, [this, descriptor] {
    Socket* accepted = find(descriptor);
    if (accepted == nullptr || accepted->state != Socket::State::connecting) return;
    accepted->state = Socket::State::connected;
    edge(*accepted, EPOLLOUT);
  });
}

// Connects a Unix socket at once.
CallResult Wires::connect_on_host(Socket& socket) {
  Socket* listener = bound_at(socket, socket.peer);
  if (listener == nullptr) return {0, ENOENT};
  if (listener->state != Socket::State::listening) return {0, ECONNREFUSED};
  if (listener->waiting.size() >= listener->backlog) return {0, EAGAIN};
  Socket& server = make_socket(socket.host, socket.family, socket.type);
  server.local = listener->local;
  join(socket, server);
  socket.state = Socket::State::connected;
  listener->waiting.push_back(server.descriptor);
  edge(*listener, EPOLLIN);
  return {};
}

// --- On the way ---

void Wires::transmit(const std::shared_ptr<SimulatedConnection>& connection, std::size_t to,
                     Segment::Kind kind, std::string bytes) {
  const std::uint32_t target = connection->hosts[to];
  const std::uint32_t source = connection->hosts[1 - to];
  Pipe& pipe = connection->to[to];
  std::int64_t departure = now();
  if (weather_.bandwidth != 0 && source != target) {
    std::int64_t& busy = busy_until_[source];
    departure = std::max(departure, busy) +
                static_cast<std::int64_t>((bytes.size() + 40) * 1'000'000'000 / weather_.bandwidth);
    busy = departure;
  }
  std::int64_t due = departure + latency(source, target);
  for (unsigned tries = 0; tries < kRepeats && is_lost(source, target); ++tries) {
    due += repeat_after(tries);
  }
  pipe.last_due = due = std::max(due, pipe.last_due);
  pipe.flying_bytes += bytes.size();
  pipe.flying.push_back({kind, due, std::move(bytes)});
  if (std::exchange(pipe.is_scheduled, true)) return;
  at(due, [this, connection, to] { deliver(connection, to); });
}

void Wires::deliver(const std::shared_ptr<SimulatedConnection>& connection, std::size_t to) {
  Pipe& pipe = connection->to[to];
  WEFT_INVARIANT(pipe.is_scheduled, "Wires I2: one event of a pipe is queued");
  pipe.is_scheduled = false;
  while (!pipe.flying.empty() && pipe.flying.front().due <= now()) {
    if (!reaches(connection->hosts[1 - to], connection->hosts[to])) {
      if (pipe.tries == kRepeats) {
        pipe.flying.clear();
        pipe.flying_bytes = 0;
        if (Socket* sender = connection->ends[1 - to]) reset(*sender, ETIMEDOUT);
        return;
      }
      pipe.flying.front().due = now() + repeat_after(pipe.tries++);
      break;
    }
    pipe.tries = 0;
    Segment segment = std::move(pipe.flying.front());
    pipe.flying.pop_front();
    pipe.flying_bytes -= segment.bytes.size();
    arrive(connection, to, std::move(segment));
  }
  if (pipe.flying.empty() || std::exchange(pipe.is_scheduled, true)) return;
  at(pipe.flying.front().due, [this, connection, to] { deliver(connection, to); });
}

void Wires::arrive(const std::shared_ptr<SimulatedConnection>& connection, std::size_t to,
                   Segment segment) {
  Socket* socket = connection->ends[to];
  if (socket == nullptr) {
    // For a process that has ended, the system answers.
    if (segment.kind == Segment::Kind::data && connection->ends[1 - to] != nullptr) {
      transmit(connection, 1 - to, Segment::Kind::reset, {});
    }
    return;
  }
  Pipe& pipe = connection->to[to];
  switch (segment.kind) {
    case Segment::Kind::data:
      if (pipe.unread() == 0) {
        pipe.received = std::move(segment.bytes);
        pipe.taken = 0;
      } else {
        pipe.received.append(segment.bytes);
      }
      return edge(*socket, EPOLLIN);
    case Segment::Kind::end:
      pipe.has_ended = true;
      return edge(*socket, EPOLLIN | EPOLLRDHUP | (socket->has_ended_writes ? EPOLLHUP : 0U));
    case Segment::Kind::reset:
      return reset(*socket, ECONNRESET);
  }
}

// --- The end ---

// Ends the connection for this socket, as the system does.
void Wires::reset(Socket& socket, int error) {
  socket.error = error;
  socket.was_reset = true;
  if (socket.connection != nullptr) {
    Pipe& out = socket.out();
    out.flying.clear();
    out.flying_bytes = 0;
  }
  edge(socket, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP);
}

// Ends the connection of a socket that is about to be closed.
void Wires::close_stream(Socket& socket, bool tells_peer) {
  const std::shared_ptr<SimulatedConnection> connection = std::exchange(socket.connection, nullptr);
  if (connection == nullptr) return;
  const std::size_t other = 1 - socket.end;
  const Pipe& in = connection->to[socket.end];
  sends(&connection->to[other]);
  connection->ends[socket.end] = nullptr;
  if (!tells_peer || socket.was_reset || connection->ends[other] == nullptr) return;
  if (in.unread() > 0 || socket.resets_on_close) {
    Pipe& out = connection->to[other];
    if (socket.resets_on_close) {
      out.flying.clear();
      out.flying_bytes = 0;
    }
    transmit(connection, other, Segment::Kind::reset, {});
  } else if (!socket.has_ended_writes) {
    transmit(connection, other, Segment::Kind::end, {});
  }
}

// --- Bytes ---

CallResult Wires::receive_bytes(Socket& socket, msghdr& message) {
  if (socket.connection == nullptr) {
    return {0, socket.error != 0 ? std::exchange(socket.error, 0) : ENOTCONN};
  }
  Pipe& in = socket.in();
  // A read is sometimes short, as if more bytes arrived just after it, with another edge.
  const std::size_t unread = in.unread();
  Chance& chance = this->chance(socket.host | kReads, socket.peer.host);
  const bool is_short = unread > 1 && chance.below(16) == 0;
  const std::size_t most = is_short ? 1 + chance.below(unread - 1) : unread;
  std::size_t done = 0;
  for (const iovec& piece : pieces_of(message)) {
    const std::size_t size = std::min(piece.iov_len, most - done);
    (void)in.received.copy(static_cast<char*>(piece.iov_base), size, in.taken);
    in.taken += size;
    done += size;
  }
  message.msg_controllen = 0;
  message.msg_flags = 0;
  if (is_short) {
    at(now(), [this, descriptor = socket.descriptor] {
      if (Socket* reader = find(descriptor)) edge(*reader, readiness(*reader));
    });
  }
  if (done > 0 || in.has_ended) receives(&in);
  if (done > 0) {
    Socket* sender = socket.connection->ends[1 - socket.end];
    if (sender != nullptr && std::exchange(sender->wants_room, false)) {
      at(now() + latency(socket.host, sender->host), [this, descriptor = sender->descriptor] {
        if (Socket* writer = find(descriptor)) edge(*writer, EPOLLOUT);
      });
    }
    return {static_cast<std::int64_t>(done), 0};
  }
  if (socket.error != 0) return {0, std::exchange(socket.error, 0)};
  if (socket.was_reset || in.has_ended || socket.has_ended_reads) return {};
  return {0, EAGAIN};
}

CallResult Wires::send_bytes(Socket& socket, const msghdr& message) {
  if (socket.error != 0) return {0, std::exchange(socket.error, 0)};
  if (socket.was_reset || socket.has_ended_writes) return {0, EPIPE};
  if (socket.connection == nullptr || socket.state != Socket::State::connected) {
    return {0, ENOTCONN};
  }
  std::string bytes;
  const std::size_t used = socket.out().outstanding();
  const std::size_t room = used < socket.room ? socket.room - used : 0;
  for (const iovec& piece : pieces_of(message)) {
    const std::size_t size = std::min(piece.iov_len, room - bytes.size());
    bytes.append(static_cast<const char*>(piece.iov_base), size);
  }
  if (bytes.empty() && room == 0) {
    socket.wants_room = true;
    return {0, EAGAIN};
  }
  Chance& chance = this->chance(socket.host, socket.peer.host);
  // Writes are sometimes short, and their bytes arrive in parts.
  if (bytes.size() > 1 && chance.below(16) == 0) bytes.resize(1 + chance.below(bytes.size() - 1));
  const std::size_t total = bytes.size();
  sends(&socket.out());
  for (std::size_t begin = 0; begin < total;) {
    std::size_t size = std::min(kSegment, total - begin);
    if (size > 1 && chance.below(8) == 0) size = 1 + chance.below(size - 1);
    transmit(socket.connection, 1 - socket.end, Segment::Kind::data, bytes.substr(begin, size));
    begin += size;
  }
  return {static_cast<std::int64_t>(total), 0};
}

}  // namespace weft::sim
