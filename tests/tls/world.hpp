// Makes both ends of a TLS connection within this machine.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/tls/stream.hpp>

#include "tests/tls/certificates.hpp"

namespace weft::test {

struct TcpPair {
  net::TcpStream client;
  net::TcpStream server;
};

[[nodiscard]] inline TcpPair connect_tcp() {
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  TcpPair pair;
  pair.client = net::TcpStream::connect(listener.local_address().value).value;
  pair.server = listener.accept().value;
  return pair;
}

struct TlsPair {
  net::Result<tls::Stream> client;
  net::Result<tls::Stream> server;
};

[[nodiscard]] inline TlsPair shake_hands(const tls::Context& server, const tls::Context& client,
                                         const std::string& name) {
  TcpPair tcp = connect_tcp();
  auto accepted = spawn([&] { return tls::Stream::accept(std::move(tcp.server), server); });
  TlsPair pair;
  pair.client = tls::Stream::connect(std::move(tcp.client), client, name);
  pair.server = accepted.join();
  return pair;
}

inline auto bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

inline std::string receive(tls::Stream& stream, std::size_t size) {
  std::string text(size, '\0');
  text.resize(stream.read_exactly(std::as_writable_bytes(std::span(text))).value);
  return text;
}

// Holds the certificates of a server, "a.test", and the contexts of both ends.
struct World {
  Certificates certificates;
  tls::Context server;
  tls::Context client;

  explicit World(std::vector<std::string> server_alpn = {},
                 std::vector<std::string> client_alpn = {}) {
    certificates.make("server", "a.test");
    server = tls::Context::server({.certificate_file = certificates.certificate("server"),
                                   .key_file = certificates.key("server"),
                                   .alpn = std::move(server_alpn)})
                 .value;
    client = tls::Context::client(
                 {.authorities_file = certificates.authority(), .alpn = std::move(client_alpn)})
                 .value;
  }
};

// Makes a connection with buffers so small that a writer soon has to wait.
[[nodiscard]] inline TlsPair shake_hands_narrowly(const World& world) {
  TlsPair pair = shake_hands(world.server, world.client, "a.test");
  for (tls::Stream* const stream : {&pair.client.value, &pair.server.value}) {
    CHECK(stream->tcp().set_send_buffer(64 * 1024));
    CHECK(stream->tcp().set_receive_buffer(64 * 1024));
  }
  return pair;
}

}  // namespace weft::test
