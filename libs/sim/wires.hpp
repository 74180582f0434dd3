// The sockets of all hosts, and the data that is in flight between them.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

#include "io/kernel.hpp"
#include "libs/sim/chance.hpp"

namespace weft::sim {

class RunState;

// The settings of sim::Network. Times are in nanoseconds.
struct Weather {
  std::int64_t least_latency = 200'000;
  std::int64_t most_latency = 2'000'000;
  double loss = 0;
  double duplication = 0;
  std::uint64_t bandwidth = 0;  // Bytes per second; 0 is no bound.
};

// The address of a socket. Unix sockets have a path, and other sockets have a port.
struct Place {
  std::uint32_t host = 0;
  std::uint16_t port = 0;
  bool is_loopback = false;
  std::string path = {};
};

struct Segment {
  enum class Kind : std::uint8_t { data, end, reset };
  Kind kind;
  std::int64_t due;
  std::string bytes;
};

// The data for one end of a connection. Segments are in flight first, in order, and then received.
struct Pipe {
  std::deque<Segment> flying;
  std::size_t flying_bytes = 0;
  std::string received;
  std::size_t taken = 0;  // The number of received bytes that the reader has taken.
  bool has_ended = false;
  std::int64_t last_due = 0;
  unsigned tries = 0;  // The number of failed repetitions of the first segment.
  bool is_scheduled = false;

  [[nodiscard]] std::size_t unread() const noexcept { return received.size() - taken; }
  [[nodiscard]] std::size_t outstanding() const noexcept { return flying_bytes + unread(); }
};

struct Socket;

// A connection of two sockets. The client's end is the first; an end is null once it is closed.
struct SimulatedConnection {
  std::array<Socket*, 2> ends{};
  std::array<std::uint32_t, 2> hosts{};
  std::array<Pipe, 2> to;
};

struct Datagram {
  Place from;
  std::string bytes;
};

struct Socket {
  enum class State : std::uint8_t { fresh, bound, listening, connecting, connected, failed };

  int descriptor = -1;
  std::uint32_t host = 0;
  int family = 0;
  int type = 0;
  State state = State::fresh;
  Place local = {};
  Place peer = {};
  bool is_watched = false;
  epoll_event watch{};
  int error = 0;  // The error that the next call returns; 0 for none.
  bool was_reset = false;
  bool has_ended_writes = false;
  bool has_ended_reads = false;
  bool resets_on_close = false;
  bool shares_port = false;
  bool wants_room = false;  // A write has found no room.
  std::size_t room = 256 * 1024;
  std::shared_ptr<SimulatedConnection> connection = {};
  std::size_t end = 0;  // The index of this end in the connection.
  std::size_t backlog = 0;
  std::deque<int> waiting = {};  // The connections that can be accepted.
  std::deque<Datagram> datagrams = {};

  [[nodiscard]] bool is_stream() const noexcept { return type == SOCK_STREAM; }
  [[nodiscard]] Pipe& in() noexcept { return connection->to[end]; }
  [[nodiscard]] Pipe& out() noexcept { return connection->to[1 - end]; }
};

// The network of a world: the sockets of all hosts by descriptor, and a queue of events that will
// happen to them. The world's worker makes all calls.
// Invariants
//   I1  Descriptors are above the range of any system, and never used twice.
//   I2  A pipe with segments in flight has one event in the queue, for its first segment.
//   I3  Events refer to sockets by descriptor, or hold the connection: an end may close at any
//       time. Not asserted, because no code can inspect the contents of a function object.
class Wires {
 public:
  explicit Wires(RunState& run) noexcept : run_(run) {}

  // Calls `call` with each socket that is about to be closed.
  void tell_of_closes(std::function<void(Socket& socket)> call) {
    tells_of_close_ = std::move(call);
  }

  // Returns null if the descriptor is not open.
  [[nodiscard]] Socket* find(int descriptor) noexcept;

  // --- For the world ---

  [[nodiscard]] Weather& weather() noexcept { return weather_; }
  void cut(std::uint32_t from, std::uint32_t to) { ++cuts_[{from, to}]; }
  void heal() noexcept { cuts_.clear(); }
  void heal(std::uint32_t from, std::uint32_t to);
  void end_host(std::uint32_t host, bool has_power);
  void power_on(std::uint32_t host) { dark_.erase(host); }
  void limit(std::uint32_t host, std::size_t most) { limits_[host] = most; }
  // Returns how many sockets of the host have a descriptor. Connections that wait to be accepted
  // have no descriptor yet.
  [[nodiscard]] std::size_t open_sockets(std::uint32_t host) const;
  [[nodiscard]] bool has_lost_any() const noexcept { return has_lost_any_; }

  // --- For the event source ---

  // Performs the events that are due.
  void run_due();
  [[nodiscard]] Deadline next() const noexcept;
  // Returns the edges since the last call.
  [[nodiscard]] std::vector<epoll_event> take_edges() noexcept { return std::move(edges_); }
  // Returns 0 or an errno.
  int watch(int descriptor, const epoll_event& event);
  void unwatch(int descriptor) noexcept;

  // --- System calls: see io::Kernel ---

  io::CallResult open_socket(int family, int type) noexcept;
  io::CallResult open_pair(std::array<int, 2>& ends) noexcept;
  io::CallResult bind(int descriptor, const sockaddr* address) noexcept;
  io::CallResult listen(int descriptor, int backlog) noexcept;
  io::CallResult accept(int descriptor) noexcept;
  io::CallResult connect(int descriptor, const sockaddr* address) noexcept;
  io::CallResult receive(int descriptor, msghdr& message) noexcept;
  io::CallResult send(int descriptor, const msghdr& message) noexcept;
  io::CallResult shut_down(int descriptor, int how) noexcept;
  io::CallResult set_option(int descriptor, int level, int name,
                            std::span<const std::byte> value) noexcept;
  io::CallResult get_option(int descriptor, int level, int name,
                            std::span<std::byte> value) noexcept;
  io::CallResult name_of(int descriptor, sockaddr_storage& name, socklen_t& size) noexcept;
  io::CallResult peer_of(int descriptor, sockaddr_storage& name, socklen_t& size) noexcept;
  short ready_now(int descriptor, short events) noexcept;
  bool is_gone(int descriptor) noexcept;
  void close(int descriptor) noexcept;
  [[nodiscard]] static bool owns(int descriptor) noexcept { return descriptor >= kFirstDescriptor; }
  std::vector<std::uint32_t> look_up(const std::string& host);

 private:
  static constexpr int kFirstDescriptor = 1 << 28;
  struct Event {
    std::int64_t due;
    std::uint64_t number;
    std::function<void()> happen;
    friend bool operator>(const Event& left, const Event& right) noexcept {
      return std::tie(left.due, left.number) > std::tie(right.due, right.number);
    }
  };
  using Key = std::tuple<std::uint32_t, int, std::uint16_t, std::string>;

  // wires.cpp
  [[nodiscard]] std::int64_t now() const noexcept;
  void at(std::int64_t due, std::function<void()> happen);
  Socket& make_socket(std::uint32_t host, int family, int type);
  void edge(Socket& socket, std::uint32_t events);
  [[nodiscard]] static std::uint32_t readiness(Socket& socket) noexcept;
  [[nodiscard]] std::int64_t latency(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] bool is_lost(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] Chance& chance(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] bool reaches(std::uint32_t from, std::uint32_t to) const;

  // places.cpp
  [[nodiscard]] static Key key_of(const Socket& socket, const Place& place);
  [[nodiscard]] bool to_place(const sockaddr* address, std::uint32_t from, Place& place) const;
  static void to_system(const Place& place, int family, sockaddr_storage& name, socklen_t& size);
  [[nodiscard]] bool occupy(Socket& socket, Place place);
  void leave_place(Socket& socket) noexcept;
  [[nodiscard]] Socket* bound_at(const Socket& like, const Place& place);
  [[nodiscard]] std::string words(const Place& place) const;

  // streams.cpp
  void join(Socket& client, Socket& server);
  void ask_to_connect(int descriptor, unsigned tries);
  void request_arrives(int descriptor, unsigned tries);
  [[nodiscard]] io::CallResult connect_on_host(Socket& socket);
  void transmit(const std::shared_ptr<SimulatedConnection>& connection, std::size_t to,
                Segment::Kind kind, std::string bytes);
  void deliver(const std::shared_ptr<SimulatedConnection>& connection, std::size_t to);
  void arrive(const std::shared_ptr<SimulatedConnection>& connection, std::size_t to,
              Segment segment);
  void reset(Socket& socket, int error);
  void close_stream(Socket& socket, bool tells_peer);
  [[nodiscard]] io::CallResult receive_bytes(Socket& socket, msghdr& message);
  [[nodiscard]] io::CallResult send_bytes(Socket& socket, const msghdr& message);

  // datagrams.cpp
  [[nodiscard]] io::CallResult receive_datagram(Socket& socket, msghdr& message);
  [[nodiscard]] io::CallResult send_datagram(Socket& socket, const msghdr& message);
  void datagram_arrives(const Socket& like, const Place& to, Datagram datagram);

  RunState& run_;
  std::function<void(Socket& socket)> tells_of_close_;
  // Each direction between two hosts has its own stream, so that it changes no other direction.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Chance> chances_;
  bool has_lost_any_ = false;
  Weather weather_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, unsigned> cuts_;
  std::set<std::uint32_t> dark_;  // The hosts without power.
  std::map<std::uint32_t, std::int64_t> busy_until_;
  std::map<std::uint32_t, std::size_t> limits_;  // The number of sockets, if a host has a limit.
  std::map<std::uint32_t, std::uint16_t> next_port_;
  int next_descriptor_ = kFirstDescriptor;
  std::map<int, std::unique_ptr<Socket>> sockets_;
  std::map<Key, std::vector<Socket*>> places_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_due_;
  std::uint64_t event_number_ = 0;
  std::vector<epoll_event> edges_;
};

}  // namespace weft::sim
