// Tests requests of a peer after the handshake, which weft's own streams never make.
#include <fcntl.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/tls/error.hpp>
#include <weft/tls/stream.hpp>

#include "libs/tls/openssl.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/tls/world.hpp"

namespace {

using namespace weft;
using namespace weft::test;

// Uses OpenSSL directly on a separate connection. Only plain threads may use this class.
class RawPeer {
 public:
  RawPeer(net::TcpStream stream, tls::ContextPtr context)
      : descriptor_(stream.release()), context_(std::move(context)), ssl_(SSL_new(context_.get())) {
    SSL_set_fd(ssl_.get(), descriptor_);
    const int flags = ::fcntl(descriptor_, F_GETFL);
    (void)::fcntl(descriptor_, F_SETFL, flags & ~O_NONBLOCK);
  }
  ~RawPeer() { ::close(descriptor_); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  [[nodiscard]] SSL* ssl() const noexcept { return ssl_.get(); }

 private:
  const int descriptor_;
  const tls::ContextPtr context_;
  const tls::SslPtr ssl_;
};

// Counts the peer's KeyUpdates.
void count_key_updates(int sends, int /*version*/, int type, const void* bytes, std::size_t size,
                       SSL* /*ssl*/, void* count) {
  const bool is_update = type == SSL3_RT_HANDSHAKE && size > 0 &&
                         static_cast<const unsigned char*>(bytes)[0] == SSL3_MT_KEY_UPDATE;
  if (sends == 0 && is_update) ++*static_cast<int*>(count);
}

// Returns the subject of the certificate that a client gets for `name`, or the client's error.
std::string answer_to(const tls::Context& server, const tls::Context& client,
                      const std::string& name) {
  const TlsPair pair = shake_hands(server, client, name);
  return pair.client.error ? pair.client.error.message() : pair.client.value.peer_subject();
}

TEST_SUITE_BEGIN("tls/peer");

FIBER_TEST_CASE("a TLS stream answers its peer's key update before it sends further bytes") {
  const Certificates certificates;
  certificates.make("server", "a.test");
  const auto context = tls::Context::server({.certificate_file = certificates.certificate("server"),
                                             .key_file = certificates.key("server")})
                           .value;
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  auto connected = net::TcpStream::connect(listener.local_address().value).value;
  RawPeer peer(std::move(connected), tls::ContextPtr(SSL_CTX_new(TLS_client_method())));
  auto reading = spawn([&] {
    auto stream = tls::Stream::accept(listener.accept().value, context).value;
    std::byte byte{};
    CHECK(stream.read_some(std::span(&byte, 1)).value == 1);
    CHECK(stream.write_all(bytes_of("y")).value == 1);
  });
  blocking([&] {
    CHECK(SSL_connect(peer.ssl()) == 1);
    int updates = 0;
    SSL_set_msg_callback(peer.ssl(), &count_key_updates);
    SSL_set_msg_callback_arg(peer.ssl(), &updates);
    CHECK(SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED) == 1);
    CHECK(SSL_write(peer.ssl(), "x", 1) == 1);
    char byte = 0;
    CHECK(SSL_read(peer.ssl(), &byte, 1) == 1);
    CHECK(updates == 1);
  });
  reading.join();
}

FIBER_TEST_CASE("a TLS renegotiation request does not block a client's write") {
  const Certificates certificates;
  certificates.make("server", "a.test");
  tls::ContextPtr old(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_max_proto_version(old.get(), TLS1_2_VERSION);
  CHECK(SSL_CTX_use_certificate_file(old.get(), certificates.certificate("server").c_str(),
                                     SSL_FILETYPE_PEM) == 1);
  CHECK(SSL_CTX_use_PrivateKey_file(old.get(), certificates.key("server").c_str(),
                                    SSL_FILETYPE_PEM) == 1);
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  auto connected = net::TcpStream::connect(listener.local_address().value).value;
  RawPeer peer(listener.accept().value, std::move(old));
  auto asking = spawn([&] {
    blocking([&] {
      CHECK(SSL_accept(peer.ssl()) == 1);
      CHECK(SSL_renegotiate(peer.ssl()) == 1);
      CHECK(SSL_do_handshake(peer.ssl()) == 1);
      CHECK(SSL_write(peer.ssl(), "x", 1) == 1);
    });
  });
  const auto context = tls::Context::client({.authorities_file = certificates.authority()}).value;
  auto [stream, error] = tls::Stream::connect(std::move(connected), context, "a.test");
  CHECK_FALSE(error);
  CHECK(stream.version() == "TLSv1.2");
  std::byte byte{};
  CHECK(stream.read_some(std::span(&byte, 1)).value == 1);
  asking.join();
  CHECK_FALSE(stream.write_all(bytes_of("y")).error);
}

FIBER_TEST_CASE("a TLS server sends the certificate for the name that the client requests") {
  const Certificates certificates;
  certificates.make("default", "default", "a.test, sure.c.test");
  certificates.make("b", "b", "b.test, B2.test");
  certificates.make("all", "all", "*.c.test, b.test");
  const auto pem = [&](const std::string& name) {
    return tls::Certificate{certificates.certificate(name), certificates.key(name)};
  };
  auto server = tls::Context::server({.certificate_file = certificates.certificate("default"),
                                      .key_file = certificates.key("default"),
                                      .more_certificates = {pem("b"), pem("all")},
                                      .alpn = {"one"}})
                    .value;
  const auto client =
      tls::Context::client({.authorities_file = certificates.authority(), .alpn = {"one", "two"}})
          .value;
  const std::vector<std::pair<std::string, std::string>> expected = {{"a.test", "default"},
                                                                     {"b.test", "b"},
                                                                     {"b2.TEST", "b"},
                                                                     {"any.c.test", "all"},
                                                                     {"sure.c.test", "default"}};
  for (const auto& [name, subject] : expected) {
    CHECK(answer_to(server, client, name) == "CN = " + subject);
  }
  CHECK(answer_to(server, client, "c.test").find("hostname mismatch") != std::string::npos);
  CHECK(answer_to(server, client, "x.y.c.test").find("mismatch") != std::string::npos);
  CHECK(shake_hands(server, client, "b.test").server.value.alpn() == "one");
  certificates.make("b", "renewed", "b.test");
  CHECK(server.reload());
  CHECK(answer_to(server, client, "b.test") == "CN = renewed");
}

FIBER_TEST_CASE("a TLS server refuses an additional certificate without a name") {
  const Certificates certificates;
  certificates.make("default", "a.test");
  certificates.make("nameless", "nameless", "");
  const auto refused =
      tls::Context::server({.certificate_file = certificates.certificate("default"),
                            .key_file = certificates.key("default"),
                            .more_certificates = {{certificates.certificate("nameless"),
                                                   certificates.key("nameless")}}});
  CHECK(refused.error == tls::Errc::certificate_without_name);
}

TEST_SUITE_END();

}  // namespace
