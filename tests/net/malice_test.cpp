// Tests servers under load, and misbehaving peers.
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>
#include <weft/io.hpp>

#include "tests/net/serving.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("net/malice");

namespace {

const int kMany = 300 / static_cast<int>(kSlowdown);

// Checks at the end of a test that the server still works.
void check_that_it_lives(const Serving& serving) {
  TcpStream stream = serving.connect();
  CHECK(ask(stream, "alive") == "alive");
}

}  // namespace

FIBER_TEST_CASE("a burst of connection resets ends only the reset connections") {
  Serving serving({}, answer_one);
  TcpStream steady = serving.connect();
  std::vector<JoinHandle<void>> attackers;
  for (int i = 0; i < 10; ++i) {
    attackers.push_back(spawn([&serving, i] {
      for (int round = 0; round < kMany / 10; ++round) {
        TcpStream stream = serving.connect();
        CHECK(stream.set_reset_on_close(true));
        // Clients leave before their first byte, with an unanswered request, in the middle of
        // several requests, or when idle.
        if ((i + round) % 4 >= 1) CHECK(!stream.write_all(bytes("request")).error);
        if ((i + round) % 4 >= 2) CHECK(read_text(stream, 7) == "request");
        if ((i + round) % 4 == 2) (void)stream.write_all(bytes("request"));
      }
    }));
  }
  for (int round = 0; round < 50; ++round) CHECK(ask(steady, "steady") == "steady");
  for (auto& attacker : attackers) attacker.join();
  check_that_it_lives(serving);
  // The server accepts in order, so it has accepted all clients by now.
  wait_for([&] { return serving->stats().open == 1; });
  CHECK(ask(steady, "still") == "still");
  CHECK(serving->stats().refused == 0);
}

SIM_TEST_CASE("a read deadline disconnects silent or stalled peers, and other peers continue") {
  std::atomic<int> gave_up = 0;
  Serving serving({}, [&](TcpStream& stream) {
    stream.set_read_deadline(Deadline::after(1min));
    std::array<std::byte, 5> request;
    const std::error_code error = stream.read_exactly(request).error;
    if (error == Errc::timed_out) ++gave_up;
    if (!error) CHECK(!stream.write_all(request).error);
  });
  std::vector<TcpStream> silent;
  constexpr int kSilent = 50;
  for (int i = 0; i < kSilent; ++i) {
    silent.push_back(serving.connect());
    if (i % 2 == 1) CHECK(!silent.back().write_all(bytes("hal")).error);
  }
  check_that_it_lives(serving);
  for (TcpStream& stream : silent) CHECK(has_ended(stream));
  CHECK(world.now() >= 1min);
  CHECK(world.now() < 2min);
  wait_for([&] { return serving->stats().open == 0; });
  CHECK(gave_up == kSilent);
}

FIBER_TEST_CASE("a write deadline disconnects peers that do not read their responses") {
  std::atomic<int> gave_up = 0;
  const std::string much(1'000'000, 'm');
  Serving serving({}, [&](TcpStream& stream) {
    shrink_buffers(stream);
    stream.set_write_deadline(Deadline::after(20ms));
    if (stream.write_all(bytes(much)).error == Errc::timed_out) ++gave_up;
  });
  constexpr int kPeers = 20;
  std::vector<TcpStream> deaf;
  for (int i = 0; i < kPeers; ++i) {
    deaf.push_back(serving.connect());
    shrink_buffers(deaf.back());
  }
  wait_for([&] { return serving->stats().accepted == kPeers && serving->stats().open == 0; });
  CHECK(gave_up == kPeers);
}

FIBER_TEST_CASE(
    "a server that stops on SIGTERM under load answers every request that it has read") {
  std::atomic<int> handled = 0;
  std::atomic<int> answered = 0;
  Serving serving({.grace = 1h}, [&](Connection& connection) {
    std::array<std::byte, 6> request;
    if (connection.bytes().read_exactly(request).error) return Next::close;
    ++handled;
    this_fiber::yield();
    if (connection.bytes().write_all(request).error) return Next::close;
    return Next::idle;
  });
  auto signals = io::SignalSet::watch({SIGTERM});
  REQUIRE(signals.error == std::error_code{});
  auto ending = spawn([&, &terminates = signals.value] {
    CHECK(terminates.wait().value == SIGTERM);
    serving->stop();
  });
  std::vector<JoinHandle<void>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(spawn([&, i] {
      for (bool goes_on = true; goes_on;) {
        auto [stream, refused] = TcpStream::connect(serving.address());
        if (refused) return;
        // Some clients keep their connection; others make a new one for each request.
        for (int round = 0; goes_on && round < (i % 2 == 0 ? 1 : 1000); ++round) {
          if (stream.write_all(bytes("please")).error) goes_on = false;
          std::array<std::byte, 6> answer;
          goes_on = goes_on && !stream.read_exactly(answer).error;
          if (goes_on && ++answered == kMany) CHECK(::raise(SIGTERM) == 0);
        }
      }
    }));
  }
  for (auto& client : clients) client.join();
  ending.join();
  CHECK(serving.end() == std::error_code{});
  CHECK(answered >= kMany);
  CHECK(handled == answered);
  CHECK(serving->stats().open == 0);
  CHECK(serving->stats().closed_late == 0);
}

TEST_SUITE_END();
