#include <weft/tls/stream.hpp>

#include <openssl/x509.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/net/buffered.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/this_fiber.hpp>
#include <weft/tls/error.hpp>
#include <weft/wait_group.hpp>

#include "libs/tls/context_state.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/tls/world.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("tls/stream");

FIBER_TEST_CASE("a TLS stream transfers a few bytes, and many bytes in both directions at once") {
  const World world;
  TlsPair pair = shake_hands(world.server, world.client, "a.test");
  auto& client = pair.client;
  auto& server = pair.server;
  CHECK_FALSE(client.error);
  CHECK_FALSE(server.error);
  CHECK(client.value.version() == "TLSv1.3");
  CHECK(client.value.peer_subject() == "CN = a.test");
  CHECK(client.value.write_all(bytes_of("hello")).value == 5);
  CHECK(receive(server.value, 5) == "hello");
  const std::string much(3'000'000, 'x');
  auto writing = spawn([&, &server = server] { return server.value.write_all(bytes_of(much)); });
  // Sends in the other direction at the same time.
  auto back = spawn([&, &client = client] { return client.value.write_all(bytes_of(much)); });
  auto reading = spawn([&, &server = server] { return receive(server.value, much.size()); });
  CHECK(receive(client.value, much.size()) == much);
  CHECK_FALSE(writing.join().error);
  CHECK_FALSE(back.join().error);
  CHECK(reading.join() == much);
}

FIBER_TEST_CASE(
    "a BufferedReader over TLS distinguishes the end of the stream from a truncated line") {
  const World world;
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  net::BufferedWriter writer(client.value);
  CHECK_FALSE(writer.write("one\r\ntwo\nthr").error);
  CHECK(writer.flush());
  net::BufferedReader reader(server.value);
  CHECK(reader.read_line().value == "one");
  CHECK(reader.read_line().value == "two");
  CHECK(client.value.shutdown());
  CHECK(reader.read_line().error == net::ReadErrc::truncated);
  CHECK(reader.read_line().error == weft::Errc::end_of_stream);
}

FIBER_TEST_CASE(
    "both ends of a TLS stream can write more bytes than fit in the kernel's buffers while both "
    "also read") {
  const World world;
  TlsPair pair = shake_hands_narrowly(world);
  const std::string much(4 << 20, 'x');
  auto writing = spawn([&] { return pair.server.value.write_all(bytes_of(much)); });
  auto back = spawn([&] { return pair.client.value.write_all(bytes_of(much)); });
  auto reading = spawn([&] { return receive(pair.server.value, much.size()); });
  CHECK(receive(pair.client.value, much.size()) == much);
  CHECK_FALSE(writing.join().error);
  CHECK_FALSE(back.join().error);
  CHECK(reading.join() == much);
}

FIBER_TEST_CASE("bytes of a TLS write that timed out are sent even if later calls only read") {
  const World world;
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  auto reading = spawn([&, &client = client] { return receive(client.value, 2); });
  this_fiber::yield();  // At least with one worker, it waits by now.
  const std::string much(32 << 20, 'x');
  const auto [taken, error] = client.value.write_all(bytes_of(much), Deadline::past());
  CHECK(error == Errc::timed_out);
  CHECK(receive(server.value, taken).size() == taken);
  CHECK(server.value.write_all(bytes_of("ok")).value == 2);
  CHECK(reading.join() == "ok");
}

FIBER_TEST_CASE_WITH(
    "unsent bytes of a TLS write are sent with the next write if no fiber can be spawned",
    {.workers = {1}, .options = {.max_fibers = 4}}) {
  const World world;
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  Event leave;
  WaitGroup others;
  CHECK_THROWS_AS(for (;;) others.go([&] { leave.wait(); }), std::system_error);
  const std::string much(32 << 20, 'x');
  const auto [taken, error] = client.value.write_all(bytes_of(much), Deadline::past());
  CHECK(error == Errc::timed_out);
  leave.set();
  others.wait();
  auto next = spawn([&, &client = client] { return client.value.write_all(bytes_of("y")); });
  CHECK(receive(server.value, taken + 1).size() == taken + 1);
  CHECK(next.join().value == 1);
}

FIBER_TEST_CASE("a TLS stream may be destroyed with bytes that its peer has not read") {
  const World world;
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  const std::string much(32 << 20, 'x');
  CHECK(client.value.write_all(bytes_of(much), Deadline::past()).error == Errc::timed_out);
  client.value = {};
  std::error_code error;
  std::vector<std::byte> room(1 << 20);
  while (!error) error = server.value.read_some(room).error;
  CHECK(error != Errc::end_of_stream);
}

FIBER_TEST_CASE("a TLS stream that its peer ends without close_notify reports a truncation") {
  const World world;
  std::byte byte{};
  {
    auto [client, server] = shake_hands(world.server, world.client, "a.test");
    CHECK(client.value.shutdown());
    CHECK(server.value.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
    // The other direction still works.
    CHECK(server.value.write_all(bytes_of("late")).value == 4);
    CHECK(receive(client.value, 4) == "late");
    CHECK(server.value.shutdown());
    CHECK(client.value.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
  }
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  (void)client.value.tcp().shutdown(net::Shutdown::write);
  CHECK(server.value.read_some(std::span(&byte, 1)).error == tls::Errc::truncated);
}

FIBER_TEST_CASE("the error for a refused certificate names the failed check") {
  const World world;
  {
    auto [client, server] = shake_hands(world.server, world.client, "b.test");
    CHECK(client.error.category() == tls::verification_category());
    CHECK(client.error.value() == X509_V_ERR_HOSTNAME_MISMATCH);
    CHECK(client.error.message() ==
          std::string("certificate verify failed: ") +
              X509_verify_cert_error_string(X509_V_ERR_HOSTNAME_MISMATCH));
    CHECK(server.error);
  }
  const World stranger;
  auto [client, server] = shake_hands(stranger.server, world.client, "a.test");
  CHECK(client.error.category() == tls::verification_category());
  CHECK(client.error.value() != X509_V_ERR_HOSTNAME_MISMATCH);
  CHECK(server.error);
}

FIBER_TEST_CASE("a TLS client refuses a certificate that has the host only as its common name") {
  const World world;
  world.certificates.make("server", "a.test", "");
  CHECK(tls::Context(world.server).reload());
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  CHECK(client.error.value() == X509_V_ERR_HOSTNAME_MISMATCH);
}

FIBER_TEST_CASE(
    "a TLS client sends and checks a server name without the final dot, and refuses an empty "
    "name") {
  const World world;
  auto [client, server] = shake_hands(world.server, world.client, "a.test.");
  CHECK(!client.error);
  CHECK(!server.error);
  for (const std::string& name : {std::string(), std::string("a.test\0.b.test", 14)}) {
    CHECK(shake_hands(world.server, world.client, name).client.error ==
          std::errc::invalid_argument);
  }
  CHECK(shake_hands(world.server, world.client, ".").client.error);
}

FIBER_TEST_CASE(
    "a TLS context offers only cipher suites with forward secrecy and authenticated encryption") {
  const World world;
  for (const tls::Context& context : {world.server, world.client}) {
    const tls::SslPtr ssl = context.state()->make_ssl();
    STACK_OF(SSL_CIPHER)* const suites = SSL_get_ciphers(ssl.get());
    CHECK(sk_SSL_CIPHER_num(suites) > 0);
    for (int i = 0; i < sk_SSL_CIPHER_num(suites); ++i) {
      const SSL_CIPHER* const suite = sk_SSL_CIPHER_value(suites, i);
      CAPTURE(SSL_CIPHER_get_name(suite));
      CHECK(SSL_CIPHER_is_aead(suite) == 1);
      const int exchange = SSL_CIPHER_get_kx_nid(suite);
      CHECK((exchange == NID_kx_any || exchange == NID_kx_ecdhe));
    }
  }
  CHECK(!tls::Context::client({.cipher_list = "AES128-SHA"}).error);
  CHECK(tls::Context::client({.cipher_list = "no such suite"}).error);
}

FIBER_TEST_CASE("client and server agree on an ALPN protocol, or the TLS handshake fails") {
  const World both({"h2", "http/1.1"}, {"http/1.1", "h2"});
  auto [client, server] = shake_hands(both.server, both.client, "a.test");
  CHECK(client.value.alpn() == "h2");
  CHECK(server.value.alpn() == "h2");
  const World none({"h2"}, {"http/1.1"});
  CHECK(shake_hands(none.server, none.client, "a.test").client.error);
}

FIBER_TEST_CASE("a TLS session is resumed even after the certificates have been reloaded") {
  World world;
  const auto visit = [&] {
    auto [client, server] = shake_hands(world.server, world.client, "a.test");
    CHECK(server.value.write_all(bytes_of("x")).value == 1);
    CHECK(receive(client.value, 1) == "x");  // The ticket precedes this byte.
    CHECK(client.value.resumed() == server.value.resumed());
    return client.value.resumed();
  };
  CHECK_FALSE(visit());
  CHECK(visit());
  CHECK(world.server.reload());
  CHECK(visit());
}

FIBER_TEST_CASE("reloaded certificates apply only to connections that begin later") {
  World world;
  auto [before, other_end] = shake_hands(world.server, world.client, "a.test");
  world.certificates.make("server", "b.test");
  CHECK(world.server.reload());
  CHECK(shake_hands(world.server, world.client, "a.test").client.error);
  const auto after = shake_hands(world.server, world.client, "b.test");
  CHECK(after.client.value.peer_subject() == "CN = b.test");
  CHECK(before.value.write_all(bytes_of("x")).value == 1);
  CHECK(receive(other_end.value, 1) == "x");
}

FIBER_TEST_CASE("a TLS client presents its certificate if the server requests a certificate") {
  const World world;
  world.certificates.make("client", "someone");
  const auto server =
      tls::Context::server({.certificate_file = world.certificates.certificate("server"),
                            .key_file = world.certificates.key("server"),
                            .client_authorities_file = world.certificates.authority()})
          .value;
  const auto client =
      tls::Context::client({.authorities_file = world.certificates.authority(),
                            .certificate_file = world.certificates.certificate("client"),
                            .key_file = world.certificates.key("client")})
          .value;
  CHECK(shake_hands(server, client, "a.test").server.value.peer_subject() == "CN = someone");
  CHECK(shake_hands(server, world.client, "a.test").server.error);
}

FIBER_TEST_CASE("a deadline ends a TLS handshake and a TLS read") {
  const World world;
  TcpPair tcp = connect_tcp();
  CHECK(tls::Stream::accept(std::move(tcp.server), world.server, Deadline::after(5ms)).error ==
        Errc::timed_out);
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  std::byte byte{};
  CHECK(client.value.read_some(std::span(&byte, 1), Deadline::after(1ms)).error == Errc::timed_out);
  CHECK(server.value.write_all(bytes_of("x")).value == 1);
  CHECK(receive(client.value, 1) == "x");
}

FIBER_TEST_CASE(
    "a stop request ends a TLS handshake, a read and a write, and the stream stays usable") {
  const World world;
  TcpPair silent = connect_tcp();
  auto [client, server] = shake_hands_narrowly(world);
  std::stop_source source;
  const std::stop_token token = source.get_token();
  auto handshake = spawn(
      [&] { return tls::Stream::accept(std::move(silent.server), world.server, token).error; });
  auto read = spawn([&stream = client.value, &token] {
    std::byte byte{};
    return stream.read_some(std::span(&byte, 1), token).error;
  });
  const std::string much(16 << 20, 'x');
  auto write = spawn(
      [&stream = server.value, &much, &token] { return stream.write_all(bytes_of(much), token); });
  // The sent bytes end the read; no peer reads the remaining bytes.
  CHECK_FALSE(read.join());
  auto back = spawn([&stream = server.value, &token] {
    std::byte byte{};
    return stream.read_some(std::span(&byte, 1), token).error;
  });
  await_parked(3);
  (void)source.request_stop();
  CHECK(handshake.join() == Errc::cancelled);
  CHECK(back.join() == Errc::cancelled);
  const auto [taken, error] = write.join();
  CHECK(error == Errc::cancelled);
  CHECK(taken < much.size());
  CHECK(client.value.write_all(bytes_of("on")).value == 2);
  CHECK(receive(server.value, 2) == "on");
}

THREAD_TEST_CASE("plain threads perform TLS handshakes, read, write and shut down") {
  const World world;
  TcpPair tcp = connect_tcp();
  std::thread other([&] {
    auto [server, error] = tls::Stream::accept(std::move(tcp.server), world.server);
    CHECK_FALSE(error);
    CHECK(receive(server, 8) == "question");
    CHECK(server.write_all(bytes_of("answer")).value == 6);
    CHECK(server.shutdown());
  });
  auto [client, error] = tls::Stream::connect(std::move(tcp.client), world.client, "a.test");
  CHECK_FALSE(error);
  CHECK(client.write_all(bytes_of("question")).value == 8);
  CHECK(receive(client, 6) == "answer");
  std::byte byte{};
  CHECK(client.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
  other.join();
  TcpPair silent = connect_tcp();
  CHECK(tls::Stream::accept(std::move(silent.server), world.server, Deadline::after(1ms)).error ==
        Errc::timed_out);
  std::stop_source source;
  go([&] { (void)source.request_stop(); });
  silent = connect_tcp();
  CHECK(tls::Stream::accept(std::move(silent.server), world.server, source.get_token()).error ==
        Errc::cancelled);
}

FIBER_TEST_CASE("writing to a disconnected TLS peer returns an error and raises no signal") {
  const World world;
  auto [client, server] = shake_hands(world.server, world.client, "a.test");
  client.value.close();
  const std::string much(1 << 20, 'x');
  std::error_code error;
  for (int i = 0; i < 100 && !error; ++i) error = server.value.write_all(bytes_of(much)).error;
  CHECK(error);
}

FIBER_TEST_CASE("the error for a missing certificate file is no_such_file_or_directory") {
  const auto [context, error] =
      tls::Context::server({.certificate_file = "/nothing", .key_file = "/nothing"});
  CHECK(error == std::errc::no_such_file_or_directory);
  CHECK(tls::Context::client({.authorities_file = "/nothing"}).error == error);
}

FIBER_TEST_CASE("a key file that needs a password is refused without a prompt for the password") {
  World world;
  world.certificates.encrypt_key("server");
  CHECK(world.server.reload() == tls::Errc::encrypted_key);
  CHECK_FALSE(shake_hands(world.server, world.client, "a.test").client.error);
}

FIBER_TEST_CASE("ALPN protocol names that cannot be sent are refused") {
  const World world;
  for (const std::string& name : {std::string(), std::string(256, 'a')}) {
    const auto server =
        tls::Context::server({.certificate_file = world.certificates.certificate("server"),
                              .key_file = world.certificates.key("server"),
                              .alpn = {"h2", name}});
    CHECK(server.error == std::errc::invalid_argument);
    CHECK(tls::Context::client({.alpn = {name}}).error == std::errc::invalid_argument);
  }
}

TEST_SUITE_END();

}  // namespace
