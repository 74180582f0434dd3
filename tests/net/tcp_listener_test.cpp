#include <array>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
#include <weft/go.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::Address;
using net::TcpListener;
using net::TcpStream;

TEST_SUITE_BEGIN("net/tcp_listener");

FIBER_TEST_CASE("the system chooses a port for a listener on port 0") {
  TcpListener listener = listen_anywhere();
  const auto [address, error] = listener.local_address();
  CHECK(!error);
  CHECK(address.port() != 0);
  CHECK(address == Address::loopback_v4(address.port()));
}

FIBER_TEST_CASE("listening on a port in use returns an error") {
  TcpListener listener = listen_anywhere();
  CHECK(TcpListener::listen(listener.local_address().value).error == std::errc::address_in_use);
}

FIBER_TEST_CASE("listeners share a port when each of them requests port sharing") {
  TcpListener first = listen_anywhere({.reuse_port = true});
  const Address address = first.local_address().value;
  auto [second, error] = TcpListener::listen(address, {.reuse_port = true});
  CHECK(error == std::error_code{});
  auto [client, refused] = TcpStream::connect(address);
  CHECK(refused == std::error_code{});
}

FIBER_TEST_CASE("a port can be listened on again immediately after a close") {
  TcpListener listener = listen_anywhere();
  const Address address = listener.local_address().value;
  {
    // The server closes first, so that its side of the connection lingers.
    auto [client, server] = connect_to(listener);
    server.close();
    std::array<std::byte, 1> buffer;
    CHECK(client.read_some(buffer).error == Errc::end_of_stream);
  }
  listener.close();
  CHECK(!TcpListener::listen(address).error);
}

FIBER_TEST_CASE("a listener and a stream exchange data over IPv6") {
  auto [listener, error] = TcpListener::listen(Address::loopback_v6(0));
  if (error == std::errc::address_not_available ||
      error == std::errc::address_family_not_supported) {
    return;  // This machine has no IPv6.
  }
  CHECK(error == std::error_code{});
  auto [client, server] = connect_to(listener);
  CHECK(client.peer_address().value.is_v6());
  CHECK(client.write_all(bytes("six")).value == 3);
  CHECK(read_text(server, 3) == "six");
}

FIBER_TEST_CASE("accept() returns connections that were made before the call") {
  constexpr std::size_t kConnections = 20;
  TcpListener listener = listen_anywhere();
  std::vector<TcpStream> clients;
  for (std::size_t i = 0; i < kConnections; ++i) {
    clients.push_back(TcpStream::connect(listener.local_address().value).value);
  }
  for (std::size_t i = 0; i < kConnections; ++i) CHECK(!listener.accept().error);
}

FIBER_TEST_CASE("accept() skips a connection that was reset before it was accepted") {
  TcpListener listener = listen_anywhere();
  const Address address = listener.local_address().value;
  {
    auto [client, error] = TcpStream::connect(address);
    const linger at_once{1, 0};
    CHECK(::setsockopt(client.socket().descriptor(), SOL_SOCKET, SO_LINGER, &at_once,
                       sizeof at_once) == 0);
  }
  auto [client, error] = TcpStream::connect(address);
  CHECK(client.write_all(bytes("alive")).value == 5);
  // Linux returns the dead connection; other systems skip it.
  std::string text;
  while (text.empty()) {
    auto [server, failed] = listener.accept();
    CHECK(failed == std::error_code{});
    text = read_text(server, 5);
  }
  CHECK(text == "alive");
}

FIBER_TEST_CASE(
    "an accept() that finds no free descriptor returns the error at its deadline, and the listener "
    "stays usable") {
  TcpListener listener = listen_anywhere();
  auto [client, refused] = TcpStream::connect(listener.local_address().value);
  CHECK(refused == std::error_code{});
  {
    // An accept would get the lowest free number.
    const DescriptorLimit limit(limit_that_leaves(0));
    CHECK(listener.accept(Deadline::past()).error == std::errc::too_many_files_open);
    CHECK(listener.accept(Deadline::after(5ms)).error == std::errc::too_many_files_open);
    std::stop_source stop;
    auto acceptor = spawn([&] { return listener.accept(stop.get_token()).error; });
    CHECK(!acceptor.wait_for(5ms));
    (void)stop.request_stop();
    CHECK(acceptor.join() == std::errc::too_many_files_open);
    CHECK(TcpStream::connect(listener.local_address().value).error ==
          std::errc::too_many_files_open);
  }
  auto [server, error] = listener.accept();
  CHECK(error == std::error_code{});
  CHECK(client.write_all(bytes("at last")).value == 7);
  CHECK(read_text(server, 7) == "at last");
}

THREAD_TEST_CASE("a plain thread accepts a connection that another thread makes") {
  TcpListener listener = listen_anywhere();
  const Address address = listener.local_address().value;
  std::thread connector([address] {
    auto [stream, error] = TcpStream::connect(address);
    CHECK(error == std::error_code{});
    echo(stream);
  });
  {
    auto [stream, error] = listener.accept();
    CHECK(error == std::error_code{});
    for (int i = 0; i < 100; ++i) {
      CHECK(stream.write_all(bytes("ping")).value == 4);
      CHECK(read_text(stream, 4) == "ping");
    }
  }
  connector.join();
}

TEST_SUITE_END();
