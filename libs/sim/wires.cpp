#include "libs/sim/wires.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <weft/detail/invariant.hpp>

#include "libs/sim/run_state.hpp"

namespace weft::sim {

namespace {

// The number of the first stream of a seed for the network. The other streams have smaller numbers.
constexpr std::uint64_t kNetworkStream = std::uint64_t{1} << 32;
// The latency within one host, in nanoseconds.
constexpr std::int64_t kLoopback = 10'000;

}  // namespace

std::int64_t Wires::now() const noexcept { return run_.now(); }

// --- Events ---

void Wires::at(std::int64_t due, std::function<void()> happen) {
  events_due_.push({std::max(due, now()), event_number_++, std::move(happen)});
}

void Wires::run_due() {
  while (!events_due_.empty() && events_due_.top().due <= now()) {
    const auto happen = std::move(const_cast<Event&>(events_due_.top()).happen);
    events_due_.pop();
    happen();
  }
}

Deadline Wires::next() const noexcept {
  return events_due_.empty() ? Deadline::never() : Deadline::at_nanoseconds(events_due_.top().due);
}

// --- Between hosts ---

Chance& Wires::chance(std::uint32_t from, std::uint32_t to) {
  const std::uint64_t way = (std::uint64_t{from} << 16) + to;
  return chances_.try_emplace({from, to}, run_.seed(), kNetworkStream + way).first->second;
}

std::int64_t Wires::latency(std::uint32_t from, std::uint32_t to) {
  if (from == to) return kLoopback;
  const std::int64_t drawn =
      chance(from, to).between(weather_.least_latency, weather_.most_latency);
  return run_.plan().is_quick ? weather_.least_latency : drawn;
}

bool Wires::is_lost(std::uint32_t from, std::uint32_t to) {
  if (from == to || weather_.loss <= 0) return false;
  const bool lost = chance(from, to).is_true(weather_.loss) && !run_.plan().is_silent;
  has_lost_any_ = has_lost_any_ || lost;
  return lost;
}

bool Wires::reaches(std::uint32_t from, std::uint32_t to) const {
  return !dark_.contains(from) && !dark_.contains(to) &&
         (from == to || !cuts_.contains({from, to}));
}

void Wires::heal(std::uint32_t from, std::uint32_t to) {
  const auto found = cuts_.find({from, to});
  if (found != cuts_.end() && --found->second == 0) cuts_.erase(found);
}

// --- Descriptors ---

Socket* Wires::find(int descriptor) noexcept {
  const auto found = sockets_.find(descriptor);
  return found == sockets_.end() ? nullptr : found->second.get();
}

Socket& Wires::make_socket(std::uint32_t host, int family, int type) {
  const int descriptor = next_descriptor_++;
  WEFT_INVARIANT(owns(descriptor) && find(descriptor) == nullptr, "Wires I1: it was never used");
  Socket& socket = *(sockets_[descriptor] = std::make_unique<Socket>());
  socket.descriptor = descriptor;
  socket.host = host;
  socket.family = family;
  socket.type = type;
  socket.local.host = host;
  return socket;
}

std::size_t Wires::open_sockets(std::uint32_t host) const {
  std::size_t count = 0;
  for (const auto& [descriptor, socket] : sockets_) {
    if (socket->host == host) count += 1 - socket->waiting.size();
  }
  return count;
}

int Wires::watch(int descriptor, const epoll_event& event) {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return EBADF;
  if (socket->is_watched) return EEXIST;
  socket->is_watched = true;
  socket->watch = event;
  if (const std::uint32_t now = readiness(*socket); now != 0) edge(*socket, now);
  return 0;
}

void Wires::unwatch(int descriptor) noexcept {
  if (Socket* socket = find(descriptor)) socket->is_watched = false;
}

// Reports an edge, as the poller registers descriptors edge-triggered.
void Wires::edge(Socket& socket, std::uint32_t events) {
  if (!socket.is_watched) return;
  epoll_event event = socket.watch;
  event.events = events & (socket.watch.events | EPOLLERR | EPOLLHUP);
  if (event.events != 0) edges_.push_back(event);
}

std::uint32_t Wires::readiness(Socket& socket) noexcept {
  if (!socket.is_stream()) {
    return (socket.datagrams.empty() ? 0U : EPOLLIN) | EPOLLOUT |
           (socket.error != 0 ? EPOLLERR : 0U);
  }
  switch (socket.state) {
    case Socket::State::fresh:
    case Socket::State::bound:
      return EPOLLOUT | EPOLLHUP;
    case Socket::State::listening:
      return socket.waiting.empty() ? 0U : EPOLLIN;
    case Socket::State::connecting:
      return 0;
    case Socket::State::failed:
      return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
    case Socket::State::connected:
      break;
  }
  std::uint32_t events = 0;
  const Pipe& in = socket.in();
  const bool is_at_end = in.has_ended || socket.has_ended_reads;
  if (in.unread() > 0 || is_at_end || socket.was_reset) events |= EPOLLIN;
  if (socket.out().outstanding() < socket.room || socket.was_reset || socket.has_ended_writes) {
    events |= EPOLLOUT;
  }
  if (is_at_end) events |= EPOLLRDHUP;
  if (socket.was_reset || (is_at_end && socket.has_ended_writes)) events |= EPOLLHUP;
  if (socket.error != 0) events |= EPOLLERR;
  return events;
}

short Wires::ready_now(int descriptor, short events) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr) return events;
  const std::uint32_t now = readiness(*socket);
  if ((now & (EPOLLERR | EPOLLHUP)) != 0) return events;
  return static_cast<short>(now & static_cast<std::uint32_t>(events));
}

bool Wires::is_gone(int descriptor) noexcept {
  Socket* socket = find(descriptor);
  if (socket == nullptr || socket->connection == nullptr || socket->was_reset) return true;
  return socket->in().has_ended;
}

}  // namespace weft::sim
