// Tests how calls end on a connection that is read frame by frame.
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <string>
#include <string_view>
#include <weft/asio/stream.hpp>
#include <weft/asio/websocket.hpp>
#include <weft/blocking.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/http_test.hpp"

namespace weft::test {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kUpgrade =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
// A text frame in the form that servers send.
constexpr std::string_view kFrame = "\x81\x02hi";

// Holds the server's end of a connection, which one caller uses.
struct Talk {
  explicit Talk(http::Upgraded& upgraded) : connection(upgraded) {
    stream.stream().resume(upgraded);
  }

  std::string read() {
    std::array<char, 16> buffer;
    const std::size_t count = stream.read_some(boost::asio::buffer(buffer), error);
    return {buffer.data(), count};
  }
  void read_too_late() {
    connection.stream.set_read_deadline(Deadline::after(1ms));
    CHECK(read().empty());
    CHECK(error == boost::asio::error::timed_out);
    connection.stream.set_read_deadline(Deadline::never());
  }
  void ask_for_more() {
    CHECK(stream.write_some(boost::asio::buffer("?", 1), error) == 1);
    CHECK_FALSE(error);
  }

  http::Upgraded& connection;
  asio::IdleStream stream{asio::FrameStream()};
  boost::system::error_code error;
};

// Waits for a frame until a deadline passes, and then receives the frame in two parts.
void wait_for_frame(http::Upgraded& upgraded) {
  Talk talk(upgraded);
  talk.read_too_late();
  CHECK_FALSE(talk.stream.stream().has_more());
  talk.ask_for_more();
  std::string frame = talk.read();
  CHECK(talk.stream.stream().has_more());
  talk.read_too_late();
  talk.ask_for_more();
  while (talk.stream.stream().has_more()) frame += talk.read();
  CHECK(frame == kFrame);
}

// Writes to a client that does not read.
void write_too_much(http::Upgraded& upgraded) {
  Talk talk(upgraded);
  CHECK(upgraded.stream.set_send_buffer(64 * 1024));
  upgraded.stream.set_write_deadline(Deadline::after(5ms));
  const std::string much(1 << 20, 'x');
  while (!talk.error) {
    (void)talk.stream.write_some(boost::asio::buffer(much), talk.error);
  }
  CHECK(talk.error == boost::asio::error::timed_out);
  auto closing = spawn([&] { talk.stream.close(); });
  CHECK(talk.read().empty());
  CHECK(talk.error == boost::asio::error::operation_aborted);
  closing.join();
}

// Starts a client that sends a frame in two parts on request; `run` calls the function that talks
// to the client.
template <class Run>
void talk_with_client(Run run) {
  HttpServer server([run](http::Request&, http::Response& response) {
    CHECK(response.upgrade({}, [run](http::Upgraded upgraded) {
      run([&] {
        wait_for_frame(upgraded);
        write_too_much(upgraded);
      });
    }));
  });
  net::TcpStream client = server.connect();
  send_text(client, kUpgrade);
  (void)receive_until(client, "?");
  send_text(client, kFrame.substr(0, 1));
  (void)receive_until(client, "?");
  send_text(client, kFrame.substr(1));
  while (server.server().stats().connections > 0) this_fiber::yield();
}

}  // namespace

TEST_SUITE_BEGIN("asio/frames");

FIBER_TEST_CASE("a deadline or a close ends a wait for WebSocket frames without losing a byte") {
  talk_with_client([](auto talk) { talk(); });
}

FIBER_TEST_CASE(
    "plain threads read and write WebSocket frames, and a deadline or a stop request ends their "
    "waits") {
  talk_with_client([](auto talk) { blocking(talk); });
}

TEST_SUITE_END();

}  // namespace weft::test
