// Hosts outside of the simulation that a world lets in by name, and the sockets that lead there.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/attempt.hpp"

namespace weft::sim {

struct Socket;

// Watches system sockets.
class SystemWatch {
 public:
  // Watches a system socket, whose events go to the watch of a simulated socket. Returns 0 or an
  // errno.
  virtual int watch_system(int descriptor, epoll_event event) noexcept = 0;
  virtual void unwatch_system(int descriptor) noexcept = 0;

 protected:
  ~SystemWatch() = default;
};

// Keeps a system socket for each simulated socket that has been connected to a real host. Fibers
// see simulated addresses of these hosts, so that the story has no real addresses. The world's
// worker makes all calls.
class RealHosts {
 public:
  explicit RealHosts(SystemWatch& watch) noexcept : watch_(watch) {}
  // Closes the sockets that fibers of the world have left open.
  ~RealHosts();
  RealHosts(const RealHosts&) = delete;
  RealHosts& operator=(const RealHosts&) = delete;

  // See World::let_in_host().
  void let_in(std::string_view name, std::string_view address, std::chrono::nanoseconds patience);
  // Returns the simulated addresses of a host that is let in, in network byte order. The result is
  // empty for other names and if the system cannot resolve the name. Blocks the thread.
  [[nodiscard]] std::vector<std::uint32_t> look_up(const std::string& name);

  // Returns whether the address belongs to a host that is let in.
  [[nodiscard]] bool has(const sockaddr* address) const noexcept {
    return find(address) != nullptr;
  }
  // Connects the socket to that address; in later calls it returns the state of the connection.
  [[nodiscard]] io::CallResult connect(Socket& socket, const sockaddr* address) noexcept;
  // Returns the system's socket of a simulated socket; -1 if it has none.
  [[nodiscard]] int system_of(int descriptor) const noexcept {
    const auto found = sockets_.find(descriptor);
    return found == sockets_.end() ? -1 : found->second.system;
  }
  // The next functions require system_of() >= 0.
  [[nodiscard]] io::CallResult receive(int descriptor, msghdr& message) noexcept;
  [[nodiscard]] io::CallResult send(int descriptor, const msghdr& message) noexcept;
  [[nodiscard]] io::CallResult shut_down(int descriptor, int how) noexcept;
  [[nodiscard]] io::CallResult set_option(int descriptor, int level, int name,
                                          std::span<const std::byte> value) noexcept;
  [[nodiscard]] io::CallResult get_option(int descriptor, int level, int name,
                                          std::span<std::byte> value) noexcept;
  [[nodiscard]] bool is_gone(int descriptor) const noexcept;
  [[nodiscard]] io::CallResult peer_of(int descriptor, sockaddr_storage& name,
                                       socklen_t& size) const noexcept;
  // Closes the system's socket, if there is one.
  void close(int descriptor) noexcept;

  // Returns for how many nanoseconds of real time the virtual time must still not pass, because a
  // real host may be about to send. The result is at most 0 if the virtual time may pass.
  [[nodiscard]] std::int64_t wait_left() const noexcept;

 private:
  struct Address {
    sockaddr_storage system;
    socklen_t size;
    std::int64_t patience;  // Nanoseconds of real time.
  };
  struct Name {
    std::string asked;  // The name or address that the system resolves.
    std::int64_t patience;
  };
  struct RealConnection {
    int system;
    std::int64_t patience;
    sockaddr_storage peer;  // The simulated address.
  };

  [[nodiscard]] const Address* find(const sockaddr* address) const noexcept;
  std::size_t number_of(const Address& address);
  void expect_more(std::int64_t patience) noexcept;

  SystemWatch& watch_;
  std::map<std::string, Name, std::less<>> names_;
  std::map<std::string, std::size_t, std::less<>> literals_;  // Indices of addresses_.
  std::vector<Address> addresses_;
  std::map<int, RealConnection> sockets_;  // The keys are simulated descriptors.
  std::int64_t stands_still_until_ = 0;
};

}  // namespace weft::sim
