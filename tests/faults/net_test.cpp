// Tests faults while sockets listen, connect, and send and receive.
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "tests/faults/other_side.hpp"
#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/net");

namespace {

using namespace std::chrono_literals;
using weft::test::Call;
using weft::test::CloseAtEnd;
using weft::test::demand;
using weft::test::Documented;
using weft::test::expect_none;
using weft::test::kShort;
using weft::test::sweep;

// The errors that this side gets after a fault of the other side. A server that ends may have
// closed its listener before the last client connects.
const Documented kOtherSide =
    weft::test::of_other_side({std::error_code(ECONNREFUSED, std::system_category())});

void echo(weft::net::TcpStream& stream) {
  std::byte buffer[64];
  for (;;) {
    const auto [count, error] = stream.read_some(buffer);
    if (error || stream.write_all(std::span(buffer).first(count)).error) return;
  }
}

// Serves the clients one after the other, and retries after errors of the process (EMFILE), as a
// server does. An error of the listener ends the loop, and closes all connections that are not
// accepted yet.
void serve(weft::net::TcpListener& listener) {
  std::vector<weft::JoinHandle<void>> connections;
  const CloseAtEnd close_at_end{listener};
  for (;;) {
    auto [stream, error] = listener.accept();
    if (error == std::errc::too_many_files_open || error == std::errc::no_buffer_space ||
        error == std::errc::not_enough_memory ||
        error == std::errc::too_many_files_open_in_system) {
      weft::this_fiber::sleep_for(1ms);
      continue;
    }
    if (error) break;
    connections.push_back(weft::spawn([stream = std::move(stream)]() mutable { echo(stream); }));
  }
}

void one_client(const weft::net::Address& address) {
  auto [stream, refused] = weft::net::TcpStream::connect(address, weft::Deadline::after(20s));
  expect_none(refused);
  stream.set_read_deadline(weft::Deadline::after(20s));
  expect_none(stream.set_no_delay(true));
  std::string text(300, 'q');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  expect_none(stream.write_all(std::as_bytes(std::span(text))).error);
  std::string answer(text.size(), '\0');
  expect_none(stream.read_exactly(std::as_writable_bytes(std::span(answer))).error);
  demand(answer == text, "what was sent comes back");
  expect_none(stream.shutdown(weft::net::Shutdown::write));
  std::byte rest[8];
  const std::error_code end = stream.read_some(rest).error;
  demand(end && end != weft::Errc::timed_out, "then the stream ends");
}

void echo_server() {
  weft::Runtime runtime({.workers = 2});
  runtime.run([] {
    auto [listener, refused] = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0));
    expect_none(refused);
    const auto address = listener.local_address();
    expect_none(address.error);
    weft::JoinHandle<void> server;
    server = weft::spawn([&listener = listener] { serve(listener); });
    const CloseAtEnd at_end{listener};
    std::vector<weft::JoinHandle<void>> clients;
    clients.reserve(3);
    for (int i = 0; i < 3; ++i) {
      clients.push_back(weft::spawn([&address] { one_client(address.value); }));
    }
    for (auto& client : clients) client.join();
  });
}

TEST_CASE("an echo server continues or returns the error when a call on its sockets fails") {
  sweep(&echo_server,
        {{Call::make_socket, EMFILE},
         {Call::bind_socket, EADDRINUSE},
         {Call::listen_socket, EADDRINUSE},
         {Call::connect_socket, ECONNREFUSED},
         {Call::connect_socket, EINTR},
         {Call::set_option, ENOBUFS},
         {Call::get_name, ENOBUFS},
         {Call::shut_down, ENOTCONN},
         {Call::close_file, EINTR}},
        kOtherSide);
}
TEST_CASE("an echo server continues when accept() fails") {
  sweep(&echo_server, {{Call::accept_socket, EMFILE},
                       {Call::accept_socket, EMFILE, 5},
                       {Call::accept_socket, ENFILE},
                       {Call::accept_socket, ENOBUFS},
                       {Call::accept_socket, EPERM},
                       {Call::accept_socket, EOPNOTSUPP, 2},
                       {Call::accept_socket, ETIMEDOUT, 2},
                       {Call::accept_socket, ENOPROTOOPT, 2},
                       {Call::accept_socket, ECONNABORTED, 3},
                       {Call::accept_socket, EINTR, 3},
                       {Call::accept_socket, EAGAIN, 3}});
}
TEST_CASE("an echo server continues when a receive or a send fails") {
  sweep(&echo_server,
        {{Call::receive, EINTR, 3},
         {Call::receive, EAGAIN, 3},
         {Call::receive, kShort, 50},
         {Call::send, EINTR, 3},
         {Call::send, EAGAIN, 3},
         {Call::send, kShort, 50},
         {Call::receive, ECONNRESET},
         {Call::send, ECONNRESET},
         {Call::send, ENOBUFS}},
        kOtherSide);
}
TEST_CASE("an echo server continues when a call on its poller fails") {
  sweep(&echo_server,
        {{Call::create_epoll, EMFILE},
         {Call::control_epoll, ENOSPC},
         {Call::wait_epoll, EINTR, 3},
         {Call::wait_epoll, ENOSYS},
         {Call::wait_epoll, EPERM},
         {Call::create_event, EMFILE},
         {Call::write_file, EINTR, 3},
         {Call::read_file, EINTR}},
        kOtherSide);
}
TEST_CASE("an echo server continues when an allocation fails") {
  sweep(&echo_server, {{Call::allocate, ENOMEM}}, kOtherSide);
}
}  // namespace

TEST_SUITE_END();
