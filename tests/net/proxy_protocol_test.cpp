#include <weft/net/proxy_protocol.hpp>

#include <unistd.h>

#include <chrono>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/net/networks.hpp>
#include <weft/net/unix_listener.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/this_fiber.hpp>

#include "tests/net/serving.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using namespace std::string_literals;
using net::Address;
using net::Networks;

namespace {

const std::string kLine = "PROXY TCP4 192.0.2.1 198.51.100.22 4711 443\r\n";

// Returns a header of version 2 with the size of `block`.
std::string binary(char command, char family, const std::string& block) {
  const auto size = static_cast<unsigned>(block.size());
  return "\r\n\r\n\0\r\nQUIT\n"s + command + family + static_cast<char>(size >> 8U) +
         static_cast<char>(size & 0xffU) + block;
}

const std::string kV4 = "\xc0\x00\x02\x01\xc6\x33\x64\x16\x12\x67\x01\xbb"s;
const std::string kV6 = "\x20\x01\x0d\xb8"s + std::string(11, '\0') + '\1' + std::string(15, '\0') +
                        '\1' + "\x12\x67\x01\xbb"s;
// An unrelated extension, and the extension of a client that uses TLS.
const std::string kTls = "\x04\x00\x01x\x20\x00\x05\x01\x00\x00\x00\x00"s;

// Returns the source, "none" or "wrong", and the text after the header.
std::string read_header(const std::string& bytes) {
  auto [client, server] = connected_pair();
  CHECK_FALSE(client.write_all(bytes + "rest").error);
  CHECK(client.shutdown(net::Shutdown::write));
  const auto [header, error] = net::read_proxy_header(server);
  if (error) {
    CHECK((error == std::errc::protocol_error || error == Errc::end_of_stream));
    return "wrong";
  }
  std::string text = header.source ? header.source->to_string() : "none";
  if (header.is_secure) text += " by TLS";
  CHECK(header.source.has_value() == header.destination.has_value());
  if (header.destination) CHECK(header.destination->port() == 443);
  return text + " " + read_text(server, 100);
}

std::string say_peer(Connection& connection) {
  const auto [peer, error] = connection.peer_address();
  if (error) return "unknown";
  return peer.with_port(0).to_string();
}

}  // namespace

TEST_SUITE_BEGIN("net/proxy_protocol");

TEST_CASE("net::Networks contains the addresses that match one of its prefixes") {
  const Networks networks = {"10.16.0.0/12", "192.0.2.1", "2001:db8::/33", "::1/128"};
  for (const char* inside : {"10.16.0.0:0", "10.31.255.255:1", "192.0.2.1:80", "[2001:db8::5]:0",
                             "[2001:db8:7fff::5]:0", "[::1]:0", "[::ffff:10.17.0.1]:0"}) {
    CHECK(networks.contains(Address::parse(inside).value));
  }
  for (const char* outside : {"10.15.255.255:0", "10.32.0.0:0", "192.0.2.2:0", "0.0.0.1:0",
                              "[2001:db8:8000::]:0", "[::2]:0", "[::ffff:192.0.2.2]:0"}) {
    CHECK_FALSE(networks.contains(Address::parse(outside).value));
  }
  CHECK(Networks({"0.0.0.0/0"}).contains(Address::loopback_v4(0)));
  CHECK_FALSE(Networks({"0.0.0.0/0"}).contains(Address::loopback_v6(0)));
  CHECK_FALSE(Networks({"::/0"}).contains(Address::loopback_v4(0)));
  CHECK(Networks({"::ffff:10.0.0.0/104"}).contains(Address::parse("10.1.2.3:0").value));
  CHECK(Networks().empty());
  CHECK_FALSE(Networks({"unix:"}).empty());
}

TEST_CASE("Networks::add() refuses text that is invalid or has bits set beyond the prefix") {
  for (const char* text :
       {"", "a", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "10.1.0.0/8", "::1/129",
        "2001:db8::1/64", "fe80::1%1", "[::1]", "10.0.0", "10.0.0.0:80", "0.0.0.1/0"}) {
    INFO(std::string(text));
    CHECK(Networks().add(text) == std::errc::invalid_argument);
  }
  CHECK_THROWS_AS(Networks({"10.0.0.0/8", "b"}), std::invalid_argument);
}

FIBER_TEST_CASE("reading a PROXY header of version 1 or 2 consumes no byte after the header") {
  CHECK(read_header(kLine) == "192.0.2.1:4711 rest");
  CHECK(read_header("PROXY TCP6 2001:db8::1 ::1 4711 443\r\n") == "[2001:db8::1]:4711 rest");
  CHECK(read_header("PROXY TCP4 1.1.1.1 2.2.2.2 0 443\r\n") == "1.1.1.1:0 rest");
  CHECK(read_header("PROXY UNKNOWN\r\n") == "none rest");
  CHECK(read_header("PROXY UNKNOWN ffff::1 what ever\r\n") == "none rest");
  CHECK(read_header(binary('\x21', '\x11', kV4)) == "192.0.2.1:4711 rest");
  CHECK(read_header(binary('\x21', '\x21', kV6)) == "[2001:db8::1]:4711 rest");
  CHECK(read_header(binary('\x21', '\x11', kV4 + kTls)) == "192.0.2.1:4711 by TLS rest");
  CHECK(read_header(binary('\x21', '\x31', std::string(216, 'x') + kTls)) == "none by TLS rest");
  CHECK(read_header(binary('\x21', '\0', "what")) == "none rest");
  CHECK(read_header(binary('\x20', '\0', "")) == "none rest");  // The proxy's own connection.
  CHECK(read_header(binary('\x20', '\x11', kV4)) == "none rest");
}

FIBER_TEST_CASE("a server refuses bytes that are not a PROXY header") {
  for (const std::string& bytes : std::vector<std::string>{
           "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
           "proxy TCP4 1.1.1.1 2.2.2.2 1 443\r\n",
           "PROXY TCP5 1.1.1.1 2.2.2.2 1 443\r\n",
           "PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n",
           "PROXY TCP4 1.1.1.1 2.2.2.2 1 443 5\r\n",
           "PROXY TCP4  1.1.1.1 2.2.2.2 1 443\r\n",
           "PROXY TCP4 1.1.1.1 2.2.2.2 1 65536\r\n",
           "PROXY TCP4 ::1 ::1 1 443\r\n",
           "PROXY TCP4 [::1] [::1] 1 443\r\n",
           "PROXY TCP6 1.1.1.1 2.2.2.2 1 443\r\n",
           "PROXY TCP6 fe80::1%1 ::1 1 443\r\n",
           "PROXY TCP4 1.1.1.1 2.2.2.2 1 443\n\n",
           "PROXY UNKNOWN\n\n",
           "PROXY UNKNOWN " + std::string(100, 'x') + "\r\n",
           "\r\n\r\n\0\r\nQUIT\r\x21\x11\0\x0c"s + kV4,
           binary('\x11', '\x11', kV4),
           binary('\x22', '\x11', kV4),
           binary('\x21', '\x41', kV4),
           binary('\x21', '\x13', kV4),
           binary('\x21', '\x11', kV4.substr(1)),
           binary('\x21', '\x21', kV4),
           binary('\x21', '\x11', kV4 + "\x04"),
           binary('\x21', '\x11', kV4 + "\x04\x00\x02x"s),
           binary('\x21', '\x11', kV4 + "\x20\x00\x04\x01\x00\x00\x00"s),
           binary('\x21', '\x11', std::string(4097, 'x')),
           binary('\x21', '\x11', kV4).substr(0, 20),
       }) {
    CHECK((read_header(bytes) == "wrong" ? std::string() : bytes).empty());
  }
}

FIBER_TEST_CASE(
    "a server uses a PROXY header's client address only if a trusted proxy sent the header") {
  const auto answer_peer = [](Connection& connection) {
    const std::string request = read_text(connection.bytes(), 4);
    CHECK_FALSE(connection.bytes().write_all(say_peer(connection) + "\n").error);
    return request == "next" ? Next::idle : Next::close;
  };
  const auto receive_line = [](net::ByteStream& stream) {
    std::string line;
    while (!line.ends_with('\n')) {
      const std::string byte = read_text(stream, 1);
      if (byte.empty()) break;
      line += byte;
    }
    return line;
  };
  Serving trusting({.proxy_protocol = {.networks = {"127.0.0.0/8"}}}, answer_peer);
  TcpStream stream = trusting.connect();
  CHECK_FALSE(stream.write_all(kLine + "next").error);
  CHECK(receive_line(stream) == "192.0.2.1:0\n");
  CHECK_FALSE(stream.write_all("last").error);  // Only the first bytes are a header.
  CHECK(receive_line(stream) == "192.0.2.1:0\n");
  TcpStream own = trusting.connect();
  CHECK_FALSE(own.write_all("PROXY UNKNOWN\r\nlast").error);
  CHECK(receive_line(own) == "127.0.0.1:0\n");
  TcpStream wrong = trusting.connect();
  CHECK_FALSE(wrong.write_all("a request without a header").error);
  CHECK(has_ended(wrong));
  CHECK(trusting.end() == std::error_code{});
  CHECK(trusting->stats().refused == 1);

  Serving careful({.proxy_protocol = {.networks = {"192.0.2.0/24", "unix:"}}},
                  [&](Connection& connection) {
                    CHECK(connection.proxy_header() == nullptr);
                    return answer_peer(connection);
                  });
  TcpStream stranger = careful.connect();
  CHECK_FALSE(stranger.write_all("PROX").error);  // Bytes of another protocol.
  CHECK(receive_line(stranger) == "127.0.0.1:0\n");

  const auto path = net::UnixAddress::abstract("weft-proxied-" + std::to_string(::getpid())).value;
  auto local = net::UnixListener::listen(path).value;
  Server server(answer_peer, {.proxy_protocol = {.networks = {"unix:"}}});
  auto loop = spawn([&] { return server.serve(local); });
  auto by_path = net::UnixStream::connect(path).value;
  CHECK_FALSE(by_path.write_all(kLine + "last").error);
  CHECK(receive_line(by_path) == "192.0.2.1:0\n");
  server.stop();
  CHECK(loop.join() == std::error_code{});
}

SIM_TEST_CASE("a server refuses a connection whose PROXY header does not arrive in time") {
  Serving serving({.proxy_protocol = {.networks = {"0.0.0.0/0", "::/0"}, .wait = 1min}},
                  [](TcpStream&) { CHECK(false); });
  TcpStream stream = serving.connect();
  CHECK_FALSE(stream.write_all(std::string_view(kLine).substr(0, 20)).error);
  CHECK(has_ended(stream));
  CHECK(world.now() >= 1min);
  CHECK(world.now() < 2min);
  CHECK(serving->stats().refused == 1);
}

SIM_TEST_CASE("a server that stops does not wait for a PROXY header") {
  Serving serving({.proxy_protocol = {.networks = {"0.0.0.0/0", "::/0"}, .wait = 1min}},
                  [](TcpStream&) { CHECK(false); });
  TcpStream stream = serving.connect();
  CHECK_FALSE(stream.write_all(std::string_view(kLine).substr(0, 20)).error);
  while (serving->stats().accepted == 0) this_fiber::sleep_for(1ms);
  this_fiber::sleep_for(1s);  // The header's beginning has been read.
  const auto began = world.now();
  CHECK(serving->shutdown(5min));
  CHECK(world.now() - began < 1s);
  CHECK(has_ended(stream));
}

TEST_SUITE_END();
