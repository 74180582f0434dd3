// A port that refuses connections for as long as a test needs it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <weft/net/address.hpp>

namespace weft::test {

// Holds a port on which no socket listens. The port of a closed listener would also refuse
// connections, but another process might take that port.
class RefusingPort {
 public:
  RefusingPort() noexcept : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(descriptor_, any, size) == 0 && ::getsockname(descriptor_, any, &size) == 0) {
      port_ = ntohs(address.sin_port);
    }
  }
  ~RefusingPort() { ::close(descriptor_); }
  RefusingPort(const RefusingPort&) = delete;
  RefusingPort& operator=(const RefusingPort&) = delete;

  [[nodiscard]] net::Address address() const { return net::Address::loopback_v4(port_); }

 private:
  int descriptor_;
  std::uint16_t port_ = 0;
};

}  // namespace weft::test
