// Runs a server in the same process, and provides functions for its clients and handlers.
#pragma once

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <weft/go.hpp>
#include <weft/net/serve.hpp>
#include <weft/this_fiber.hpp>

#include "tests/net/loopback.hpp"

namespace weft::test {

using net::Connection;
using net::Next;
using net::Server;
using net::ServerOptions;
using net::TcpListener;
using net::TcpStream;

// Runs a server in a separate fiber.
class Serving {
 public:
  template <class H>
  Serving(ServerOptions options, H handler)
      : server_(std::move(handler), std::move(options)), listener_(listen_anywhere()) {
    address_ = listener_.local_address().value;
    running_ = spawn([this] { return server_.serve(listener_); });
  }
  ~Serving() {
    server_.stop();
    if (running_.joinable()) CHECK(running_.join() == std::error_code{});
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  Server* operator->() noexcept { return &server_; }
  [[nodiscard]] TcpStream connect() const {
    auto [stream, error] = TcpStream::connect(address_);
    CHECK(error == std::error_code{});
    return std::move(stream);
  }
  [[nodiscard]] const net::Address& address() const noexcept { return address_; }
  // Stops the server, and waits for its end.
  std::error_code end() {
    server_.stop();
    return running_.join();
  }

 private:
  Server server_;
  TcpListener listener_;
  net::Address address_;
  JoinHandle<Result<void>> running_;
};

// Returns whether the peer has closed without sending another byte.
inline bool has_ended(TcpStream& stream) {
  std::array<std::byte, 8> buffer;
  const std::error_code error = stream.read_some(buffer).error;
  return error == Errc::end_of_stream || error == std::errc::connection_reset;
}

// Returns whether the other side's system has received all written bytes. (An emulator may not
// report that.)
inline bool has_arrived(const TcpStream& stream) {
  int left = 0;
  return ::ioctl(stream.native_handle(), SIOCOUTQ, &left) != 0 || left == 0;
}

inline std::string ask(TcpStream& stream, std::string_view request) {
  CHECK(!stream.write_all(bytes(request)).error);
  return read_text(stream, request.size());
}

// Answers one request of at most 64 bytes, and waits for the next one without a fiber.
inline Next answer_one(Connection& connection) {
  std::array<std::byte, 64> buffer;
  const auto [count, error] = connection.stream().read_some(buffer);
  if (error || connection.stream().write_all(std::span(buffer).first(count)).error) {
    return Next::close;
  }
  return Next::idle;
}

inline void wait_for(const std::function<bool()>& condition) {
  while (!condition()) this_fiber::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace weft::test
