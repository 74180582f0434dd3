#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

// Descriptors of the system that a world lets in.
TEST_SUITE_BEGIN("sim/system");

using namespace std::chrono_literals;
namespace io = weft::io;
namespace sim = weft::sim;

TEST_CASE("a pipe of the system that is let in by name takes real time and no virtual time") {
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

TEST_CASE("a socket of the system that is let in is read, and one of another kind is refused") {
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

TEST_SUITE_END();
