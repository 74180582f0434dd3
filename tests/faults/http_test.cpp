// Tests faults while clients send HTTP requests and servers answer.
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>
#include <weft/http/files.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/this_fiber.hpp>

#include "tests/faults/other_side.hpp"
#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/http");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::test::Call;
using weft::test::demand;
using weft::test::Documented;
using weft::test::expect_none;
using weft::test::kShort;
using weft::test::sweep_in_runtime;

const Documented kOtherSide =
    weft::test::of_other_side({make_error_code(weft::http::Errc::unexpected_end),
                               std::error_code(ECONNREFUSED, std::system_category()),
                               // The scenario's error for an answer with 500 or 503.
                               std::make_error_code(std::errc::resource_unavailable_try_again)});

// A file that does not change.
constexpr const char* kFile = "/etc/services";

// Expects a complete answer or an error, never a part that counts as the whole answer.
void expect_answer(weft::http::Client& client, const weft::http::Call& call,
                   const std::string& body) {
  auto [reply, failed] = client.send(call, Deadline::after(20s));
  expect_none(failed);
  if (reply.status() == 500 || reply.status() == 503) {
    expect_none(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
  const auto [text, broken] = reply.read_all(Deadline::after(20s));
  expect_none(broken);
  demand(reply.status() == 200 && text == body, "an answer is whole");
}

// Reads through a standard stream, whose calls are not replaced.
const std::string& text_of_file() {
  static const std::string text = [] {
    std::ifstream file(kFile);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

enum class What : std::uint8_t { bodies, file, idle };

// Makes the client keep two connections, and close one after the other when no request needs them.
void let_two_be_idle(const std::string& url, const weft::http::Server& server) {
  weft::http::Client client({.idle = 10ms});
  auto [one, failed] = client.get(url, Deadline::after(20s));
  expect_none(failed);
  auto [other, failed_too] = client.get(url, Deadline::after(20s));
  expect_none(failed_too);
  expect_none(one.read_all(Deadline::after(20s)).error);
  weft::this_fiber::sleep_for(1ms);
  expect_none(other.read_all(Deadline::after(20s)).error);
  while (server.stats().connections > 0) weft::this_fiber::sleep_for(1ms);
}

void serve(What what) {
  weft::http::Server server(
      [](weft::http::Request& request, weft::http::Response& response) {
        if (request.method() == "GET") {
          (void)weft::http::send_file(request, response, kFile);
          return;
        }
        auto [body, failed] = request.read_all();
        if (failed) return;
        (void)response.send("you sent " + body);
      },
      {.max_running = 2, .max_queued = 2, .on_exception = [](const std::exception_ptr&) {}});
  auto [listener, refused] = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0));
  expect_none(refused);
  const auto [address, unknown] = listener.local_address();
  expect_none(unknown);
  auto serving = weft::spawn([&server, &listener = listener] {
    const weft::test::CloseAtEnd close_at_end{listener};
    (void)server.serve(listener);
  });
  std::exception_ptr failed;
  try {
    const std::string url = "http://127.0.0.1:" + std::to_string(address.port()) + "/";
    weft::http::Client client;
    if (what == What::idle) let_two_be_idle(url, server);
    if (what == What::file) {
      expect_answer(client, {.url = url}, text_of_file());
      expect_answer(client, {.url = url}, text_of_file());
    }
    if (what == What::bodies) {
      for (const std::string& body : {std::string("a word"), std::string(3000, 'w')}) {
        expect_answer(client, {.method = "POST", .url = url, .body = body}, "you sent " + body);
      }
    }
  } catch (...) {
    failed = std::current_exception();
  }
  server.shutdown(Deadline::after(20s));
  listener.close();
  try {
    serving.join();
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed) std::rethrow_exception(failed);
}
void serve_bodies() { serve(What::bodies); }
void serve_file() { serve(What::file); }
void serve_idle() { serve(What::idle); }
TEST_CASE("a server answers each request, or an error is returned, when a system call fails") {
  sweep_in_runtime(&serve_bodies,
                   {{Call::make_socket, EMFILE},
                    {Call::connect_socket, ECONNREFUSED},
                    {Call::accept_socket, EMFILE, 2},
                    {Call::control_epoll, ENOMEM},
                    {Call::set_option, ENOBUFS},
                    {Call::receive, EINTR, 3},
                    {Call::receive, EAGAIN, 3},
                    {Call::receive, kShort, 5000},
                    {Call::receive, ECONNRESET},
                    {Call::send, EAGAIN, 3},
                    {Call::send, kShort, 5000},
                    {Call::send, EPIPE},
                    {Call::send_message, EAGAIN, 3},
                    {Call::send_message, kShort, 5000},
                    {Call::send_message, EPIPE},
                    {Call::shut_down, ENOTCONN},
                    {Call::close_file, EINTR}},
                   kOtherSide);
}
TEST_CASE("a request is answered, or an error is returned, when an allocation fails") {
  sweep_in_runtime(&serve_bodies, {{Call::allocate, ENOMEM}}, kOtherSide);
}
// A second call also fails, while the first failure is reported.
TEST_CASE("a server answers with an error or ends the connection when several allocations fail") {
  for (const unsigned times : {2U, 3U, 5U}) {
    sweep_in_runtime(&serve_bodies, {{Call::allocate, ENOMEM, times}}, kOtherSide);
  }
}

TEST_CASE(
    "a client closes its idle connections after the idle time, or immediately if an allocation "
    "fails") {
  sweep_in_runtime(&serve_idle, {{Call::allocate, ENOMEM}}, kOtherSide);
}

TEST_CASE("a client receives a whole file or an error when a system call or an allocation fails") {
  sweep_in_runtime(&serve_file,
                   {{Call::open_file, EMFILE},
                    {Call::open_file, ENOSYS},
                    {Call::get_status, EIO},
                    {Call::send_file, EAGAIN, 3},
                    {Call::send_file, kShort, 500},
                    {Call::send_file, EINVAL},
                    {Call::send_file, EIO},
                    {Call::send_file, EPIPE},
                    {Call::close_file, EINTR},
                    {Call::allocate, ENOMEM}},
                   kOtherSide);
}

}  // namespace

TEST_SUITE_END();
