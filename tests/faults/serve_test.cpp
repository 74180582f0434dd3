// Tests faults while a server accepts, clients dial by name, and groups of threads make calls.
#include <netdb.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/blocking_group.hpp>
#include <weft/go.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/faults/other_side.hpp"
#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/serve");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::net::Address;
using weft::net::TcpListener;
using weft::net::TcpStream;
using weft::test::Call;
using weft::test::demand;
using weft::test::Documented;
using weft::test::expect_none;
using weft::test::sweep_in_runtime;

// The errors that a client also gets after a fault of the other side.
const Documented kOtherSide =
    weft::test::of_other_side({std::error_code(ECONNREFUSED, std::system_category())});

// Sends two questions over a connection that occupies no fiber between the questions.
void ask(const Address& address) {
  auto [stream, refused] = TcpStream::connect(address, Deadline::after(20s));
  expect_none(refused);
  for (int i = 0; i < 2; ++i) {
    std::array<std::byte, 1> text{std::byte{'q'}};
    expect_none(stream.write_all(text, Deadline::after(20s)).error);
    expect_none(stream.read_exactly(text, Deadline::after(20s)).error);
  }
}

// Checks that a fault of one connection does not affect others: the server serves a later client.
void serve_with(weft::net::ServerOptions options) {
  options.grace = 1s;
  auto [listener, refused] = TcpListener::listen(Address::loopback_v4(0));
  expect_none(refused);
  const auto [address, unknown] = listener.local_address();
  expect_none(unknown);
  const auto answer = [](weft::net::Connection& connection) {
    std::array<std::byte, 1> request;
    if (connection.bytes().read_exactly(request, Deadline::after(20s)).error) {
      return weft::net::Next::close;
    }
    const auto error = connection.bytes().write_all(request, Deadline::after(20s)).error;
    return error ? weft::net::Next::close : weft::net::Next::idle;
  };
  weft::net::Server server(answer, std::move(options));
  std::error_code served;
  std::atomic<bool> has_ended{false};
  auto serving = weft::spawn([&server, &served, &has_ended, &listener = listener] {
    struct NoteEnd {
      std::atomic<bool>& ended;
      TcpListener& listener;
      ~NoteEnd() {
        ended = true;
        listener.close();  // Ends the waits of clients if the server has not started.
      }
    };
    const NoteEnd note_end{has_ended, listener};
    served = server.serve(listener);
  });
  std::exception_ptr failed;
  try {
    ask(address);
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed && !has_ended) {
    bool is_served = false;
    for (int i = 0; i < 3 && !is_served; ++i) {
      try {
        ask(address);
        is_served = true;
      } catch (const std::exception&) {
        weft::this_fiber::sleep_for(1ms);
      }
    }
    demand(is_served || has_ended, "the next client is served");
  }
  server.stop();
  try {
    serving.join();
  } catch (...) {
    failed = std::current_exception();
  }
  demand(!served, "nothing but stop() ends a server that has begun");
  if (failed) std::rethrow_exception(failed);
}
void serve() { serve_with({}); }
void serve_in_pool() {
  weft::FiberPool pool({.capacity = 2});
  serve_with({.run = weft::net::in_pool(pool)});
}
constexpr std::initializer_list<weft::test::Fault> kServerFaults = {
    {Call::accept_socket, EMFILE},
    {Call::accept_socket, EMFILE, 3},
    {Call::accept_socket, ENOMEM},
    {Call::accept_socket, ECONNABORTED, 2},
    {Call::accept_socket, EPERM},
    {Call::accept_socket, EOPNOTSUPP, 2},
    {Call::accept_socket, ETIMEDOUT},
    {Call::accept_socket, ENOPROTOOPT, 2},
    {Call::control_epoll, ENOSPC},
    {Call::control_epoll, ENOMEM},
    {Call::open_file, EMFILE},
    {Call::receive, ECONNRESET},
    {Call::send, EPIPE},
    {Call::close_file, EINTR},
    {Call::map, ENOMEM},
    {Call::start_thread, EAGAIN},
    {Call::allocate, ENOMEM},
};
TEST_CASE("a server serves the next client after any system call has failed") {
  sweep_in_runtime(&serve, kServerFaults, kOtherSide);
}
TEST_CASE(
    "a server whose handlers run in a pool serves the next client after any system call has "
    "failed") {
  sweep_in_runtime(&serve_in_pool, kServerFaults, kOtherSide);
}

void dial() {
  auto [listener, refused] = TcpListener::listen(Address::loopback_v4(0));
  expect_none(refused);
  const auto [address, unknown] = listener.local_address();
  expect_none(unknown);
  weft::net::Resolver resolver({.idle_time = 1ms});
  auto [stream, undialled] = weft::net::dial("localhost:" + std::to_string(address.port()),
                                             {.resolver = &resolver}, Deadline::after(20s));
  expect_none(undialled);
}
TEST_CASE("dial() connects to a name or returns an error when a system call fails") {
  sweep_in_runtime(&dial,
                   {{Call::make_socket, EMFILE},
                    {Call::connect_socket, ECONNREFUSED},
                    {Call::connect_socket, EADDRNOTAVAIL},
                    {Call::get_option, ENOBUFS},
                    {Call::control_epoll, ENOSPC},
                    {Call::start_thread, EAGAIN},
                    {Call::allocate, ENOMEM}},
                   kOtherSide);
}
TEST_CASE("dial() returns the errors of its resolver") {
  sweep_in_runtime(&dial, {{Call::look_up, -EAI_AGAIN}, {Call::look_up, -EAI_MEMORY}},
                   {std::error_code(EAI_AGAIN, weft::net::resolver_category()),
                    std::error_code(EAI_MEMORY, weft::net::resolver_category())});
}

void group() {
  weft::BlockingGroup group({.max_threads = 2, .idle_time = 1ms});
  std::vector<weft::JoinHandle<weft::Result<int>>> calls;
  std::exception_ptr failed;
  try {
    for (int i = 0; i < 4; ++i) {
      calls.push_back(weft::spawn([&group, i] { return group.run([i] { return i; }); }));
    }
  } catch (...) {
    failed = std::current_exception();
  }
  std::error_code error;
  int sum = 0;
  for (auto& call : calls) {
    try {
      const auto [value, refused] = call.join();
      sum += value;
      if (refused) error = refused;
    } catch (...) {
      failed = std::current_exception();
    }
  }
  if (failed) std::rethrow_exception(failed);
  expect_none(error);
  demand(sum == 6, "each call is made once");
}
TEST_CASE("a BlockingGroup makes each call once or returns an error when a system call fails") {
  sweep_in_runtime(&group, {{Call::start_thread, EAGAIN},
                            {Call::start_thread, EAGAIN, 2},
                            {Call::futex_wait, EINTR, 3},
                            {Call::allocate, ENOMEM},
                            {Call::allocate, ENOMEM, 2}});
}

}  // namespace

TEST_SUITE_END();
