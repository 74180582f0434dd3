#include <weft/net/datagram_socket.hpp>

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/net/select.hpp>
#include <weft/select.hpp>
#include <weft/this_fiber.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/random.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::Address;
using net::UdpSocket;
using net::UnixAddress;
using net::UnixDatagramSocket;

TEST_SUITE_BEGIN("net/datagram");

namespace {

template <class Where>
net::DatagramSocket<Where> bound_to(const Where& address) {
  auto [socket, error] = net::DatagramSocket<Where>::bind(address);
  CHECK(error == std::error_code{});
  return std::move(socket);
}
template <class Where>
net::DatagramSocket<Where> bound() {
  if constexpr (std::same_as<Where, Address>) return bound_to(Address::loopback_v4(0));
  return bound_to(Where());
}

template <class Where>
std::string text_of(net::DatagramSocket<Where>& socket, Where* from = nullptr) {
  std::string text(100, '\0');
  const auto [received, error] = socket.receive(std::as_writable_bytes(std::span(text)));
  CHECK(error == std::error_code{});
  if (from != nullptr) *from = received.from;
  text.resize(received.size);
  return text;
}

template <class Where>
void exchange_datagrams() {
  auto first = bound<Where>();
  auto second = bound<Where>();
  const Where here = first.local_address().value;
  const Where there = second.local_address().value;
  auto receiving = spawn([&] {
    Where from;
    CHECK(text_of(second, &from) == "one");
    CHECK(from == here);
    CHECK(text_of(second).empty());
    return text_of(second);
  });
  CHECK(first.send_to(bytes("one"), there));
  CHECK(first.send_to({}, there));
  CHECK(first.send_to(bytes("three"), there));
  CHECK(receiving.join() == "three");
  // A connected socket needs no address per datagram, and receives from no other peer.
  CHECK(second.connect(here));
  CHECK(second.peer_address().value == here);
  CHECK(second.send(bytes("answer")));
  CHECK(text_of(first) == "answer");
  // The part that does not fit into the buffer is lost, and the result reports that.
  CHECK(first.send_to(bytes("too long"), there));
  std::array<std::byte, 3> small;
  const auto [received, error] = second.receive(small);
  CHECK(error == std::error_code{});
  CHECK(received.size == 3);
  CHECK(received.truncated);
}

// Lets other fibers run until one of them waits for a datagram.
void await_receiver() { await_parked(1); }

template <class Where>
void end_waits() {
  auto socket = bound<Where>();
  std::array<std::byte, 8> buffer;
  CHECK(socket.receive(buffer, Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source stop;
  auto stopped =
      spawn([&, token = stop.get_token()] { return socket.receive(buffer, token).error; });
  await_receiver();
  (void)stop.request_stop();
  CHECK(stopped.join() == Errc::cancelled);
  CHECK(select(net::on_readable(socket), otherwise()) == 1);
  CHECK(socket.send_to(bytes("me"), socket.local_address().value));
  CHECK(select(net::on_readable(socket)) == 0);
  CHECK(text_of(socket) == "me");
  auto closed = spawn([&] { return socket.receive(buffer).error; });
  await_receiver();
  socket.close();
  CHECK(closed.join() == Errc::closed);
  CHECK(socket.send(bytes("x")) == Errc::closed);
}

// Returns the texts of a batch.
template <class Where>
std::vector<std::string> receive_all(net::DatagramSocket<Where>& socket, std::size_t count,
                                     const Where& from) {
  std::vector<std::string> texts;
  std::array<std::array<std::byte, 16>, 40> buffers;
  std::array<net::DatagramSlot<Where>, 40> slots;
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i].buffer = buffers[i];
  while (texts.size() < count) {
    const auto [got, error] = socket.receive_batch(slots);
    CHECK(error == std::error_code{});
    if (error) break;
    for (std::size_t i = 0; i < got; ++i) {
      CHECK(slots[i].received.from == from);
      texts.emplace_back(reinterpret_cast<const char*>(buffers[i].data()), slots[i].received.size);
    }
  }
  return texts;
}

template <class Where>
void exchange_batches() {
  constexpr std::size_t kCount = 100;  // A receiving Unix socket has no room for this many.
  auto sender = bound<Where>();
  auto receiver = bound<Where>();
  const Where here = sender.local_address().value;
  const Where there = receiver.local_address().value;
  std::vector<std::string> texts;
  std::vector<net::Outgoing<Where>> outgoing;
  std::vector<std::span<const std::byte>> plain;
  for (std::size_t i = 0; i < kCount; ++i) texts.push_back("number " + std::to_string(i));
  for (const std::string& text : texts) {
    outgoing.push_back({bytes(text), there});
    plain.push_back(bytes(text));
  }
  auto receiving = spawn([&] { return receive_all(receiver, kCount, here); });
  CHECK(sender.send_batch_to(outgoing).value == kCount);
  CHECK(receiving.join() == texts);
  CHECK(sender.connect(there));
  auto again = spawn([&] { return receive_all(receiver, kCount, here); });
  CHECK(sender.send_batch(plain).value == kCount);
  CHECK(again.join() == texts);
}

}  // namespace

FIBER_TEST_CASE("a datagram arrives whole, with its sender's address") {
  exchange_datagrams<Address>();
  exchange_datagrams<UnixAddress>();
}

FIBER_TEST_CASE(
    "a deadline, a stop request or close() ends a wait for a datagram, and a select can wait for "
    "one") {
  end_waits<Address>();
  end_waits<UnixAddress>();
}

FIBER_TEST_CASE("batches of datagrams are sent and received in order") {
  exchange_batches<Address>();
  exchange_batches<UnixAddress>();
}

FIBER_TEST_CASE("a connected UDP socket returns an error when no peer is listening") {
  // Holds the port, but receives datagrams only from itself.
  const UdpSocket other = bound<Address>();
  const Address nobody = other.local_address().value;
  REQUIRE(::connect(other.native_handle(), static_cast<const sockaddr*>(nobody.system_data()),
                    static_cast<socklen_t>(nobody.system_size())) == 0);
  auto [socket, error] = UdpSocket::connected(nobody);
  CHECK(error == std::error_code{});
  (void)socket.send(bytes("anybody?"));
  std::array<std::byte, 8> buffer;
  CHECK(socket.receive(buffer).error == std::errc::connection_refused);
  CHECK(socket.send_to(std::vector<std::byte>(70'000), nobody) == std::errc::message_size);
}

FIBER_TEST_CASE("a datagram socket that cannot connect to its peer is closed") {
  const UnixAddress nobody = UnixAddress::abstract("weft-datagram-nobody").value;
  const auto [socket, error] = UnixDatagramSocket::connected(nobody);
  CHECK(error == std::errc::connection_refused);
  CHECK_FALSE(socket.is_open_hint());
}

FIBER_TEST_CASE(
    "sending a Unix datagram to a full receiver waits until there is room or the deadline passes") {
  auto receiver = bound<UnixAddress>();
  const UnixAddress there = receiver.local_address().value;
  auto [sender, error] = UnixDatagramSocket::open(there);
  CHECK(error == std::error_code{});
  int sent = 0;
  while (sender.send_to(bytes("fill"), there, Deadline::past())) ++sent;
  CHECK(sent > 0);
  CHECK(sender.send_to(bytes("late"), there, Deadline::after(2ms)) == Errc::timed_out);
  auto patient = spawn([&from = sender, &there] { return from.send_to(bytes("last"), there); });
  for (int i = 0; i < sent; ++i) CHECK(text_of(receiver) == "fill");
  CHECK(text_of(receiver) == "last");
  CHECK(patient.join() == std::error_code{});
}

SIM_TEST_CASE("a stop request cancels the sending of a Unix datagram even right before a retry") {
  auto receiver = bound<UnixAddress>();
  const UnixAddress there = receiver.local_address().value;
  auto [sender, error] = UnixDatagramSocket::open(there);
  CHECK(error == std::error_code{});
  while (sender.send_to(bytes("fill"), there, Deadline::past())) {
  }
  for (int i = 0; i < 50; ++i) {
    std::stop_source source;
    auto waits = spawn([&from = sender, &there, token = source.get_token()] {
      return from.send_to(bytes("late"), there, token);
    });
    this_fiber::sleep_for(std::chrono::microseconds(900 + sim::random(400)));
    (void)source.request_stop();
    CHECK(waits.join() == Errc::cancelled);
  }
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends a batch send, which returns the number of datagrams sent") {
  auto receiver = bound<UnixAddress>();
  auto sender = bound<UnixAddress>();
  const UnixAddress there = receiver.local_address().value;
  std::array<std::byte, 16> buffer;
  std::array<net::DatagramSlot<UnixAddress>, 1> slots;
  slots[0].buffer = buffer;
  CHECK(receiver.receive_batch(slots, Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source source;
  auto receives =
      spawn([&, token = source.get_token()] { return receiver.receive_batch(slots, token).error; });
  await_receiver();
  (void)source.request_stop();
  CHECK(receives.join() == Errc::cancelled);
  // These are more datagrams than the receiver has room for.
  const std::vector<net::Outgoing<UnixAddress>> much(10'000, {bytes("x"), there});
  const auto [sent, late] = sender.send_batch_to(much, Deadline::after(2ms));
  CHECK(late == Errc::timed_out);
  CHECK(sent < much.size());
  std::stop_source other;
  auto sends =
      spawn([&, token = other.get_token()] { return sender.send_batch_to(much, token).error; });
  await_parked(1);
  (void)other.request_stop();
  CHECK(sends.join() == Errc::cancelled);
  for (std::size_t i = 0; i < sent; ++i) CHECK(text_of(receiver) == "x");
}

THREAD_TEST_CASE("plain threads exchange datagrams, set socket options and adopt a socket") {
  auto receiver = bound<Address>();
  const Address there = receiver.local_address().value;
  std::thread thread([&] { CHECK(text_of(receiver) == "thread"); });
  auto [sender, error] = UdpSocket::open(there);
  CHECK(error == std::error_code{});
  CHECK(sender.set_broadcast(true));
  CHECK(sender.set_send_buffer(65536));
  CHECK(receiver.set_receive_buffer(65536));
  CHECK(sender.send_to(bytes("thread"), there));
  thread.join();
  auto [again, refused] = UdpSocket::adopt(sender.release());
  CHECK(refused == std::error_code{});
  CHECK(again.send_to(bytes("again"), there));
  CHECK(text_of(receiver) == "again");
}

THREAD_TEST_CASE(
    "plain threads exchange batches of datagrams, and a deadline or a stop request ends their "
    "waits") {
  auto receiver = bound<UnixAddress>();
  auto sender = bound<UnixAddress>();
  const UnixAddress here = sender.local_address().value;
  const UnixAddress there = receiver.local_address().value;
  std::array<std::byte, 16> buffer;
  std::array<net::DatagramSlot<UnixAddress>, 1> slots;
  slots[0].buffer = buffer;
  CHECK(receiver.receive_batch(slots, Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source stop;
  go([stop]() mutable { (void)stop.request_stop(); });
  CHECK(receiver.receive_batch(slots, stop.get_token()).error == Errc::cancelled);
  // These are more datagrams than the receiver has room for.
  const std::vector<net::Outgoing<UnixAddress>> much(10'000, {bytes("x"), there});
  const auto [sent, late] = sender.send_batch_to(much, Deadline::after(1ms));
  CHECK(late == Errc::timed_out);
  const auto [none, stopped] = sender.send_batch_to(much, stop.get_token());
  CHECK(stopped == Errc::cancelled);
  CHECK(none == 0);
  const std::vector<std::string> texts(sent + 100, "x");
  std::thread thread([&] { CHECK(receive_all(receiver, texts.size(), here) == texts); });
  const auto rest = std::span(much).first(100);
  CHECK(sender.send_batch_to(rest).value == rest.size());
  thread.join();
}

TEST_SUITE_END();
