#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net/datagram_socket.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

// Tests descriptors of the real system that a world admits.
TEST_SUITE_BEGIN("sim/system");

using namespace std::chrono_literals;
namespace io = weft::io;
namespace net = weft::net;
namespace sim = weft::sim;

namespace {

// Runs a server outside of the simulation: a plain thread with a socket of the system sends back
// what it receives from one peer.
class RealEcho {
 public:
  explicit RealEcho(int type) : type_(type), socket_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* system = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(socket_, system, size) == 0);
    REQUIRE((type == SOCK_DGRAM || ::listen(socket_, 1) == 0));
    REQUIRE(::getsockname(socket_, system, &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  // Waits until the peer has closed its connection, if there was one.
  ~RealEcho() {
    (void)::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string at(std::string_view host) const {
    return std::string(host) + ":" + std::to_string(port_);
  }

 private:
  void run() const {
    std::array<char, 100> buffer{};
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    auto* system = reinterpret_cast<sockaddr*>(&peer);
    if (type_ == SOCK_DGRAM) {
      const ssize_t count = ::recvfrom(socket_, buffer.data(), buffer.size(), 0, system, &size);
      if (count < 0) return;
      CHECK(::sendto(socket_, buffer.data(), static_cast<std::size_t>(count), 0, system, size) > 0);
      return;
    }
    const int accepted = ::accept(socket_, nullptr, nullptr);
    for (ssize_t count = 0; (count = ::recv(accepted, buffer.data(), buffer.size(), 0)) > 0;) {
      CHECK(::send(accepted, buffer.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL) > 0);
    }
    ::close(accepted);
  }

  const int type_;
  const int socket_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

std::string echo_once(net::ByteStream& stream, std::string_view text) {
  std::string back(text.size(), ' ');
  CHECK(!stream.write_all(std::as_bytes(std::span(text))).error);
  // The virtual time stands still, so the time limit does not end the wait if the machine is slow.
  CHECK(!stream.read_exactly(std::as_writable_bytes(std::span(back)), 10ms).error);
  return back;
}

sim::Failure failure_of(const std::function<void(sim::World&)>& body) {
  try {
    (void)sim::explore({.seeds = 1, .shrinks = false}, body);
  } catch (const sim::Failure& failure) {
    return failure;
  }
  return {0, "", ""};
}

}  // namespace

TEST_CASE("a wait for a permitted real pipe takes real time and no virtual time") {
  const weft::test::TestGuard guard("a pipe that is let in takes no virtual time");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    world.let_in("pipe");
    auto [ends, error] = io::make_pipe();
    REQUIRE(!error);
    const auto before = weft::Clock::now();
    std::array<std::byte, 1> one{};
    auto later = weft::spawn([&ends = ends] {
      weft::this_fiber::sleep_for(1h);
      CHECK(!io::write_all(ends.write, "x").error);
    });
    CHECK(!io::read_some(ends.read, one).error);
    CHECK(weft::Clock::now() - before >= 1h);
    later.join();
  });
}

TEST_CASE("a permitted real socket can be read, and a socket of another kind is refused") {
  const weft::test::TestGuard guard("a socket of the system that is let in is read");
  const auto read_from_socket = [](const char* kind) {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    std::string reason;
    try {
      sim::explore({.seeds = 1}, [&](sim::World& world) {
        world.let_in(kind);
        auto [stream, error] = weft::net::UnixStream::adopt(ends[0]);
        sim::check(!error, "the socket is adopted");
        std::thread outside([&] { CHECK(::write(ends[1], "y", 1) == 1); });
        std::array<std::byte, 1> one{};
        CHECK(!stream.read_exactly(one).error);
        outside.join();
      });
    } catch (const sim::Failure& failure) {
      reason = failure.reason();
      ::close(ends[0]);
    }
    ::close(ends[1]);
    return reason;
  };
  CHECK(read_from_socket("socket").empty());
  const std::string reason = read_from_socket("pipe");
  CHECK(reason.find("is the system's: epoll_ctl() is refused in a simulation") !=
        std::string::npos);
  CHECK(reason.find(", socket:[") != std::string::npos);
}

TEST_CASE(
    "a simulation refuses epoll and eventfd descriptors of the program and names the refused "
    "call") {
  const weft::test::TestGuard guard("an epoll of the program's own is refused by its name");
  const auto reason_of = [](int descriptor) {
    const sim::Failure refused = failure_of([descriptor](sim::World&) {
      CHECK(weft::io::Watch::borrow(descriptor).error);  // The run fails, and the fiber continues.
    });
    ::close(descriptor);
    return refused.reason();
  };
  const std::string epoll = reason_of(::epoll_create1(EPOLL_CLOEXEC));
  CHECK(epoll.find("anon_inode:[eventpoll], is the system's: epoll_ctl() is refused") !=
        std::string::npos);
  CHECK(reason_of(::eventfd(0, EFD_CLOEXEC)).find("anon_inode:[eventfd]") != std::string::npos);
}

TEST_CASE("a simulation refuses a real internet socket unless real sockets are permitted") {
  const weft::test::TestGuard guard("a socket that a fiber opens by itself is refused");
  const auto reason_of = [](int family, bool is_let_in) {
    return failure_of([=](sim::World& world) {
             if (is_let_in) world.let_in("socket");
             world.host("node", [=] {
               const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
               // A refused call returns, and the host's fiber runs to its next wait.
               if (socket >= 0) ::close(socket);
             });
             world.run_for(1ms);
           })
        .reason();
  };
  CHECK(
      reason_of(AF_INET, false).starts_with("'node' calls socket(AF_INET): the system's sockets"));
  CHECK(reason_of(AF_INET6, false).starts_with("'node' calls socket(AF_INET6): "));
  CHECK(reason_of(AF_UNIX, false).empty());
  CHECK(reason_of(AF_INET, true).empty());
}

TEST_CASE("a simulated host dials a real host under the name that the simulation permits") {
  const weft::test::TestGuard guard("a host dials a real host by the name that is let in");
  for (const char* name : {"database.example", "127.0.0.1"}) {
    CAPTURE(name);
    const RealEcho server(SOCK_STREAM);
    std::string back;
    sim::explore({.seeds = 1}, [&](sim::World& world) {
      world.let_in_host(name, "127.0.0.1", 1min);
      world.host("client", [&] {
        auto [stream, error] = net::dial(server.at(name), 10ms);
        sim::check(!error, "the real host accepts: " + error.message());
        back = echo_once(stream, "hello");
        back += echo_once(stream, " again");
        CHECK(stream.peer_address().value.port() == server.port());
        if (name == std::string_view("database.example")) {
          CHECK(stream.peer_address().value.to_string() == server.at("10.128.0.1"));
        }
      });
      CHECK(world.run_until([&] { return back.size() == 11; }, 1s, 1ms));
    });
    CHECK(back == "hello again");
  }
}

TEST_CASE("a datagram socket exchanges datagrams with a permitted real host") {
  const weft::test::TestGuard guard("a datagram socket is connected to a real host");
  const RealEcho server(SOCK_DGRAM);
  sim::explore({.seeds = 1}, [&](sim::World& world) {
    world.let_in_host("clock.example", "127.0.0.1", 1min);
    const auto peer = net::resolve("clock.example", server.port()).value.at(0);
    auto [socket, error] = net::UdpSocket::connected(peer);
    sim::check(!error, "the socket is connected: " + error.message());
    std::array<std::byte, 8> buffer{};
    CHECK(socket.send(std::span(buffer).first(3)));
    const auto got = socket.receive(buffer, weft::Until(10ms));
    CHECK(!got.error);
    CHECK(got.value.size == 3);
    CHECK(got.value.from == peer);
  });
}

TEST_CASE("a crash of a simulated host closes its connections to real hosts") {
  const weft::test::TestGuard guard("a crash of a host closes its connections to real hosts");
  const RealEcho server(SOCK_STREAM);  // Its end waits for the connection's end.
  sim::explore({.seeds = 1}, [&](sim::World& world) {
    world.let_in_host("database.example", "127.0.0.1", 1min);
    weft::WaitGroup answered;
    answered.add(1);
    world.host("client", [&] {
      auto [stream, error] = net::dial(server.at("database.example"));
      sim::check(!error, "the real host accepts");
      CHECK(echo_once(stream, "x") == "x");
      answered.done();
      weft::this_fiber::sleep_for(24h);
    });
    answered.wait();  // No virtual time passes while the real host may send more.
    world.crash("client");
    world.run_for(1h);  // No connection remains that would stop the virtual time.
  });
}

TEST_CASE(
    "the story() of a sim::Failure names each refused call to a host outside the simulation") {
  const weft::test::TestGuard guard("a call that leads to no host is refused by its name");
  const sim::Failure refused = failure_of([](sim::World& world) {
    world.let_in_host("database.example", "127.0.0.1");
    CHECK(net::dial("another.example:80").error);
    CHECK(net::dial("192.0.2.1:80").error == std::errc::network_unreachable);
    CHECK_THROWS_AS(world.let_in_host("world"), std::invalid_argument);
    sim::fail("the story is wanted");
  });
  CHECK(refused.story().find("getaddrinfo() leads to no host") != std::string::npos);
  CHECK(refused.story().find("connect() leads to no host") != std::string::npos);
}

TEST_CASE("a simulation fails when a plain thread wakes a fiber, unless threads are permitted") {
  const weft::test::TestGuard guard("a plain thread that wakes a fiber fails the run");
  const auto body = [](bool is_let_in) {
    return [is_let_in](sim::World& world) {
      if (is_let_in) world.let_in("thread");
      weft::Channel<int> values;
      auto receiver = weft::spawn([&] { return values.receive(); });
      sim::settle();
      std::thread([&] { CHECK(values.send(7)); }).join();
      CHECK(receiver.join() == 7);
      // The body waits while no other fiber is ready, and no timer is set.
      std::thread later([&] { CHECK(values.send(8)); });
      CHECK(values.receive() == 8);
      later.join();
    };
  };
  const std::string reason = failure_of(body(false)).reason();
  CHECK(reason.starts_with("a plain thread woke a fiber: this is refused in a simulation"));
  CHECK(reason.find("is ready; runs ") != std::string::npos);
  CHECK(failure_of(body(true)).reason().empty());
}

TEST_SUITE_END();
