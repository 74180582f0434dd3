// Tests deadlines and stop requests of calls on a TLS stream.
#include <array>
#include <chrono>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/tls/error.hpp>
#include <weft/tls/http.hpp>
#include <weft/tls/stream.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/sim_test.hpp"
#include "tests/tls/world.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

// The kernel cannot buffer this much while no peer reads.
const std::string kMuch(16 << 20, 'x');

// Writes until the kernel has accepted nothing for a while, longer than the pause between its
// retries. Returns how many bytes it accepted.
template <class Stream>
std::size_t fill(Stream& stream) {
  std::size_t total = 0;
  for (bool is_full = false; !is_full;) {
    const auto [count, error] = stream.write_all(bytes_of(kMuch), Deadline::after(300ms));
    CHECK(error == Errc::timed_out);
    is_full = count == 0;
    total += count;
  }
  return total;
}

// Ends each wait on a client's TLS layer, first by a deadline and then by a stop request.
void end_waits(const World& world) {
  TcpPair tcp = connect_tcp();
  CHECK(tcp.client.set_send_buffer(64 * 1024));
  CHECK(tcp.server.set_receive_buffer(64 * 1024));
  std::stop_source source;
  auto stopper = spawn([&] { (void)source.request_stop(); });
  const std::stop_token token = source.get_token();
  const auto shake_hands = tls::server_layer(world.server);
  CHECK(shake_hands(tcp.server, Deadline::after(1ms)).error == Errc::timed_out);
  CHECK(shake_hands(tcp.server, token).error == Errc::cancelled);
  auto accepting = spawn([&] { return shake_hands(tcp.server, {}).value; });
  const auto layer = tls::client_layer(world.client)(tcp.client, "a.test", {}).value;
  const auto other_layer = accepting.join();
  std::array<std::byte, 4> buffer;
  CHECK(layer->read_some(buffer, Deadline::after(1ms)).error == Errc::timed_out);
  CHECK(layer->read_some(buffer, token).error == Errc::cancelled);
  std::size_t taken = fill(*layer);
  const auto late = layer->write_all(bytes_of(kMuch), token);
  CHECK(late.error == Errc::cancelled);
  taken += late.value;
  CHECK(layer->shutdown(Deadline::after(1ms)) == Errc::timed_out);
  CHECK(layer->shutdown(token) == Errc::cancelled);
  std::vector<std::byte> room(64 * 1024);
  std::size_t count = 0;
  std::error_code end;
  while (!end) {
    const auto [some, error] = other_layer->read_some(room, {});
    count += some;
    end = error;
  }
  CHECK(end == Errc::end_of_stream);
  CHECK(count == taken);
  stopper.join();
}

TEST_SUITE_BEGIN("tls/limits");

SIM_TEST_CASE_WITH(
    "a close_notify is sent later if a deadline or a stop request ends shutdown() while bytes are "
    "unsent",
    {.workers = {0}}) {
  const World secrets;
  auto [client, server] = shake_hands_narrowly(secrets);
  tls::Stream& stream = client.value;
  const std::size_t taken = fill(stream);
  CHECK(stream.shutdown(Deadline::after(1min)) == Errc::timed_out);
  std::stop_source source;
  auto stopped = spawn([&] { return stream.shutdown(source.get_token()); });
  sim::settle();
  (void)source.request_stop();
  CHECK(stopped.join() == Errc::cancelled);
  auto patient = spawn([&] { return stream.shutdown(); });
  CHECK(receive(server.value, taken).size() == taken);
  std::byte byte{};
  CHECK(server.value.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
  CHECK(patient.join());
  // The other direction still works.
  CHECK(server.value.write_all(bytes_of("late")).value == 4);
  CHECK(receive(stream, 4) == "late");
}

FIBER_TEST_CASE("shutting down a TLS stream repeatedly loses no bytes that its peer sends") {
  const World world;
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  CHECK(server.value.write_all(bytes_of("ab")).value == 2);
  CHECK(receive(client.value, 1) == "a");
  for (int i = 0; i < 3; ++i) CHECK(client.value.shutdown());
  CHECK(receive(client.value, 1) == "b");
  CHECK(server.value.write_all(bytes_of("c")).value == 1);
  CHECK(receive(client.value, 1) == "c");
  std::byte byte{};
  CHECK(server.value.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
}

THREAD_TEST_CASE(
    "a deadline or a stop request ends a plain thread's TLS reads, writes and shutdown without "
    "losing bytes") {
  const World world;
  auto [client, server] = shake_hands_narrowly(world);
  tls::Stream& stream = client.value;
  std::byte byte{};
  CHECK(stream.read_some(std::span(&byte, 1), Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source source;
  go([source]() mutable { (void)source.request_stop(); });
  CHECK(stream.read_some(std::span(&byte, 1), source.get_token()).error == Errc::cancelled);
  std::size_t taken = fill(stream);
  const auto [more, stopped] = stream.write_all(bytes_of(kMuch), source.get_token());
  CHECK(stopped == Errc::cancelled);
  taken += more;
  CHECK(stream.shutdown(Deadline::after(1ms)) == Errc::timed_out);
  CHECK(stream.shutdown(source.get_token()) == Errc::cancelled);
  std::thread other([&, &peer = server.value, size = taken] {
    CHECK(receive(peer, size).size() == size);
    CHECK(peer.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
  });
  CHECK(stream.shutdown());
  other.join();
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends a TLS handshake, and the caller's connection stays usable") {
  const World world;
  TcpPair tcp = connect_tcp();
  CHECK(tls::Stream::accept_on(tcp.server, world.server, Deadline::after(5ms)).error ==
        Errc::timed_out);
  std::stop_source source;
  auto stopped = spawn(
      [&] { return tls::Stream::accept_on(tcp.server, world.server, source.get_token()).error; });
  await_parked(2);  // The other parked fiber makes the handshake.
  (void)source.request_stop();
  CHECK(stopped.join() == Errc::cancelled);
  auto accepted = spawn([&] { return tls::Stream::accept_on(tcp.server, world.server); });
  auto [client, refused] = tls::Stream::connect_on(tcp.client, world.client, "a.test");
  CHECK_FALSE(refused);
  auto [server, failed] = accepted.join();
  CHECK_FALSE(failed);
  CHECK(client.write_all(bytes_of("here")).value == 4);
  CHECK(receive(server, 4) == "here");
  // The client has sent its part of the handshake by then.
  TcpPair silent = connect_tcp();
  CHECK(
      tls::Stream::connect_on(silent.client, world.client, "a.test", Deadline::after(5ms)).error ==
      Errc::timed_out);
  CHECK(tls::Stream::connect_on(silent.client, world.client, "a.test", source.get_token()).error ==
        Errc::cancelled);
  CHECK(silent.client.is_open_hint());
}

THREAD_TEST_CASE(
    "a deadline or a stop request ends a plain thread's TLS handshake on the thread's own "
    "connection") {
  const World world;
  TcpPair tcp = connect_tcp();
  std::stop_source source;
  go([source]() mutable { (void)source.request_stop(); });
  const std::stop_token token = source.get_token();
  CHECK(tls::Stream::accept_on(tcp.server, world.server, Deadline::after(1ms)).error ==
        Errc::timed_out);
  CHECK(tls::Stream::accept_on(tcp.server, world.server, token).error == Errc::cancelled);
  std::thread other([&] {
    auto [server, error] = tls::Stream::accept_on(tcp.server, world.server);
    CHECK_FALSE(error);
    CHECK(receive(server, 5) == "plain");
  });
  {
    auto [client, error] = tls::Stream::connect_on(tcp.client, world.client, "a.test");
    CHECK_FALSE(error);
    CHECK(client.write_all(bytes_of("plain")).value == 5);
    other.join();
  }
  TcpPair silent = connect_tcp();
  CHECK(
      tls::Stream::connect_on(silent.client, world.client, "a.test", Deadline::after(1ms)).error ==
      Errc::timed_out);
  CHECK(tls::Stream::connect_on(silent.client, world.client, "a.test", token).error ==
        Errc::cancelled);
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends each waiting call of a TLS layer, even on a plain thread") {
  const World world;
  end_waits(world);
  blocking([&] { end_waits(world); });
}

FIBER_TEST_CASE(
    "a new TLS handshake replaces the oldest handshake when max_handshakes is reached") {
  const World world;
  const auto server =
      tls::Context::server({.certificate_file = world.certificates.certificate("server"),
                            .key_file = world.certificates.key("server"),
                            .max_handshakes = 2})
          .value;
  std::vector<TcpPair> silent;
  std::vector<JoinHandle<std::error_code>> abandoned;
  for (std::size_t i = 0; i < 2; ++i) {
    silent.push_back(connect_tcp());
    abandoned.push_back(spawn([&server, tcp = std::move(silent.back().server)]() mutable {
      return tls::Stream::accept(std::move(tcp), server).error;
    }));
    while (server.handshakes().running <= i) this_fiber::yield();
  }
  const auto [client, accepted] = shake_hands(server, world.client, "a.test");
  CHECK_FALSE(client.error);
  CHECK_FALSE(accepted.error);
  const std::error_code oldest = abandoned[0].join();
  CHECK(oldest == tls::Errc::too_many_handshakes);
  CHECK(oldest == std::errc::resource_unavailable_try_again);
  CHECK(server.handshakes().running == 1);
  CHECK(server.handshakes().dropped == 1);
  silent[1].client.close();
  CHECK(abandoned[1].join() == tls::Errc::truncated);
  CHECK(server.handshakes().running == 0);
}

TEST_SUITE_END();

}  // namespace
