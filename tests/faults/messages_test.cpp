// Tests faults while fibers send datagrams, descriptors, bytes in pieces, and files.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/descriptor.hpp>
#include <weft/files.hpp>
#include <weft/go.hpp>
#include <weft/net/datagram_socket.hpp>
#include <weft/net/unix_stream.hpp>

#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/messages");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::net::Address;
using weft::net::UdpSocket;
using weft::net::UnixStream;
using weft::test::Call;
using weft::test::demand;
using weft::test::Documented;
using weft::test::expect_none;
using weft::test::kShort;
using weft::test::sweep_in_runtime;

const Documented kNoMemory = {std::make_error_code(std::errc::not_enough_memory)};

const Documented kOtherEnd = {
    kNoMemory[0], {EPIPE, std::system_category()}, {ECONNRESET, std::system_category()}};

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

void datagrams() {
  auto [receiver, unbound] = UdpSocket::bind(Address::loopback_v4(0));
  expect_none(unbound);
  const auto [address, unknown] = receiver.local_address();
  expect_none(unknown);
  auto [sender, unconnected] = UdpSocket::connected(address);
  expect_none(unconnected);
  const std::array<std::string, 3> texts = {"one", "two", "three"};
  expect_none(sender.send(bytes(texts[0]), Deadline::after(20s)));
  const std::array<std::span<const std::byte>, 2> rest = {bytes(texts[1]), bytes(texts[2])};
  const auto [sent, unsent] = sender.send_batch(rest, Deadline::after(20s));
  expect_none(unsent);
  demand(sent == 2, "all are sent, or an error is told");
  std::array<std::byte, 16> buffer;
  const auto [first, none] = receiver.receive(buffer, Deadline::after(20s));
  expect_none(none);
  demand(first.size == 3, "a datagram comes whole");
  for (std::size_t taken = 0; taken < 2;) {
    std::array<std::array<std::byte, 16>, 2> memory;
    std::array<weft::net::DatagramSlot<Address>, 2> slots{{{memory[0]}, {memory[1]}}};
    const auto [count, failed] = receiver.receive_batch(slots, Deadline::after(20s));
    expect_none(failed);
    taken += count;
  }
}
TEST_CASE("datagrams arrive or an error is returned when a system call fails") {
  sweep_in_runtime(&datagrams,
                   {{Call::make_socket, EMFILE},
                    {Call::bind_socket, EADDRINUSE},
                    {Call::connect_socket, ENETUNREACH},
                    {Call::get_name, ENOBUFS},
                    {Call::control_epoll, ENOSPC},
                    {Call::send_message, EINTR, 3},
                    {Call::send_message, EAGAIN},
                    {Call::send_message, ENOBUFS},
                    {Call::send, EINTR, 3},
                    {Call::send, EAGAIN},
                    {Call::send, ENOBUFS},
                    {Call::receive_message, EINTR, 3},
                    {Call::receive_message, EAGAIN, 3},
                    {Call::receive_message, ECONNREFUSED},
                    {Call::receive, EAGAIN, 3},
                    {Call::close_file, EINTR},
                    {Call::allocate, ENOMEM}},
                   kNoMemory);
}

// Sends bytes in pieces, and then a file.
void pieces() {
  auto [ends, refused] = UnixStream::pair();
  expect_none(refused);
  char path[] = "/tmp/weft_faults_XXXXXX";
  const weft::Descriptor file(::mkstemp(path));
  ::unlink(path);
  demand(::ftruncate(file.get(), 200) == 0, "there is a file");
  const std::array<std::string, 2> halves = {std::string(40, 'a'), std::string(60, 'b')};
  auto writer = weft::spawn([&writer = ends.second, &halves, &file] {
    const std::array<std::span<const std::byte>, 2> both = {bytes(halves[0]), bytes(halves[1])};
    std::error_code error = writer.write_gathered(both, Deadline::after(20s)).error;
    if (!error) error = writer.send_file(file.get(), 0, 200, Deadline::after(20s)).error;
    writer.close();
    expect_none(error);
  });
  std::string received;
  std::error_code error;
  while (!error) {
    std::array<std::byte, 30> first;
    std::array<std::byte, 30> second;
    const std::array<std::span<std::byte>, 2> both = {first, second};
    const auto [count, failed] = ends.first.read_scattered(both, Deadline::after(20s));
    error = failed;
    for (std::size_t i = 0; i < count; ++i) {
      received += static_cast<char>(i < 30 ? first[i] : second[i - 30]);
    }
  }
  ends.first.close();
  writer.join();
  if (error != weft::Errc::end_of_stream) expect_none(error);
  demand(received == halves[0] + halves[1] + std::string(200, '\0'), "it comes as it was sent");
}
TEST_CASE(
    "gathered writes and file transfers continue or return the error when a system call fails") {
  sweep_in_runtime(&pieces,
                   {{Call::make_pair, EMFILE},
                    {Call::control_epoll, ENOSPC},
                    {Call::send_message, EINTR, 3},
                    {Call::send_message, EAGAIN, 3},
                    {Call::send_message, kShort, 60},
                    {Call::send_message, EPIPE},
                    {Call::receive_message, EINTR, 3},
                    {Call::receive_message, EAGAIN, 3},
                    {Call::receive_message, kShort, 60},
                    {Call::receive_message, ECONNRESET},
                    {Call::send_file, EINTR, 3},
                    {Call::send_file, EAGAIN, 3},
                    {Call::send_file, EINVAL},
                    {Call::send_file, kShort, 60},
                    {Call::send_file, EIO},

                    {Call::control_file, EMFILE},
                    {Call::start_thread, EAGAIN},
                    {Call::close_file, EINTR},
                    {Call::allocate, ENOMEM}},
                   kOtherEnd);
}

// Sends bytes in pieces, and then a file that the system must read from the disk.
void pieces_from_disk() {
  (void)weft::files::list_directory(".");  // Makes the objects that files/ keeps forever.
  pieces();
}
TEST_CASE(
    "a send of an uncached file either succeeds or returns an error when a read from the disk "
    "fails") {
  sweep_in_runtime(&pieces_from_disk, {{Call::read_at, EIO}, {Call::read_at, EAGAIN, 3}},
                   kOtherEnd);
}

// Sends a descriptor to the other end, which reads from it.
void descriptors() {
  auto [ends, refused] = UnixStream::pair();
  expect_none(refused);
  const weft::Descriptor given(::memfd_create("given", MFD_CLOEXEC));
  demand(::ftruncate(given.get(), 5) == 0, "there is a file");
  const int number = given.get();
  expect_none(
      ends.first.send_descriptors(bytes("d"), std::span(&number, 1), Deadline::after(20s)).error);
  std::array<std::byte, 8> buffer;
  const auto [received, failed] = ends.second.receive_descriptors(buffer, Deadline::after(20s));
  expect_none(failed);
  demand(
      received.descriptors.size() == 1 && ::lseek(received.descriptors[0].get(), 0, SEEK_END) == 5,
      "the descriptor is the one that was sent");
}
TEST_CASE("descriptors passed over a Unix socket are not lost when a system call fails") {
  sweep_in_runtime(&descriptors,
                   {{Call::send_message, EINTR, 3},
                    {Call::send_message, EAGAIN, 3},
                    {Call::send_message, ETOOMANYREFS},
                    {Call::receive_message, EINTR, 3},
                    {Call::receive_message, EAGAIN, 3},
                    {Call::close_file, EINTR},
                    {Call::allocate, ENOMEM}},
                   kNoMemory);
}

}  // namespace

TEST_SUITE_END();
