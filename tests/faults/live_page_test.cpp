// Tests faults while a live page is read: one answer fails, but the page and the program continue.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <weft/go.hpp>
#include <weft/http/live_page.hpp>

#include "tests/faults/other_side.hpp"
#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/live_page");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::net::Address;
using weft::net::TcpListener;
using weft::net::TcpStream;
using weft::test::Call;
using weft::test::CloseAtEnd;
using weft::test::demand;
using weft::test::expect_none;
using weft::test::sweep_in_runtime;

// Returns the bytes until the end of the connection.
std::string ask(const Address& address, const std::string& path) {
  auto [stream, refused] = TcpStream::connect(address, Deadline::after(20s));
  expect_none(refused);
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  expect_none(stream.write_all(std::as_bytes(std::span(request)), Deadline::after(20s)).error);
  std::string text;
  for (;;) {
    std::array<char, 1024> part{};
    const auto [count, error] =
        stream.read_some(std::as_writable_bytes(std::span(part)), Deadline::after(20s));
    if (error || count == 0) return text;
    text.append(part.data(), count);
  }
}

// Checks that each answer is whole or absent: a shortage of memory must truncate none.
void read_all_pages() {
  auto [listener, refused] = TcpListener::listen(Address::loopback_v4(0));
  expect_none(refused);
  const auto [address, unknown] = listener.local_address();
  expect_none(unknown);
  auto serving = weft::spawn([&listener = listener] {
    const CloseAtEnd closer{listener};  // No client waits for a failed server.
    return weft::http::serve_live_page(listener);
  });
  {
    const CloseAtEnd closer{listener};
    for (const char* path : {"/data.json", "/metrics", "/fibers", "/fibers.json"}) {
      const std::string text = ask(address, path);
      if (text.empty()) continue;
      const bool is_whole =
          text.starts_with("HTTP/1.1 200 OK\r\n") && (text.ends_with('}') || text.ends_with('\n'));
      demand(is_whole || text.starts_with("HTTP/1.1 50"), "a page is answered, or refused");
    }
  }
  expect_none(serving.join());
}

TEST_CASE(
    "a request for the live page is answered or refused when a thread start or an allocation "
    "fails") {
  sweep_in_runtime(&read_all_pages, {{Call::start_thread, EAGAIN}, {Call::allocate, ENOMEM}},
                   {std::make_error_code(std::errc::not_enough_memory),
                    make_error_code(weft::Errc::end_of_stream),
                    {ECONNREFUSED, std::system_category()},  // The server could not start.
                    {ECONNRESET, std::system_category()}});
}

}  // namespace

TEST_SUITE_END();
