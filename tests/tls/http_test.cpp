// Tests HTTP over TLS, from end to end.
#include <weft/tls/http.hpp>

#include <optional>
#include <string>
#include <vector>
#include <weft/event.hpp>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>
#include <weft/http/server.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/this_fiber.hpp>
#include <weft/tls/error.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"
#include "tests/tls/certificates.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using weft::test::send_text;
using namespace std::chrono_literals;

constexpr std::string_view kGetOverTls = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

struct Secrets {
  Certificates certificates;
  tls::Context server;
  tls::Context client;

  Secrets() {
    certificates.make("server", "a.test");
    server = tls::Context::server({.certificate_file = certificates.certificate("server"),
                                   .key_file = certificates.key("server"),
                                   .alpn = {"http/1.1"}})
                 .value;
    client = tls::Context::client({.authorities_file = certificates.authority()}).value;
  }
  // Makes the context of a server whose clients use its address.
  [[nodiscard]] tls::Context make_server_here() const {
    certificates.make("here", "127.0.0.1");
    return tls::Context::server({.certificate_file = certificates.certificate("here"),
                                 .key_file = certificates.key("here")})
        .value;
  }
  [[nodiscard]] http::ServerOptions options() const {
    http::ServerOptions options;
    options.secure = tls::server_layer(server);
    return options;
  }
};

tls::Stream connect(const HttpServer& server, const Secrets& secrets) {
  auto [stream, error] = tls::Stream::connect(server.connect(), secrets.client, "a.test");
  CHECK_FALSE(error);
  return std::move(stream);
}

void send_text(tls::Stream& stream, std::string_view text) {
  (void)stream.write_all(std::as_bytes(std::span(text)));
}

TEST_SUITE_BEGIN("tls/http");

FIBER_TEST_CASE(
    "HTTP requests are answered over TLS on a connection that is idle between the requests") {
  const Secrets secrets;
  const HttpServer server(
      [](http::Request& request, http::Response& response) {
        (void)response.send(request.path() == "/large" ? std::string(100'000, 'x')
                                                       : request.read_all().value);
      },
      secrets.options());
  tls::Stream stream = connect(server, secrets);
  for (int i = 0; i < 5; ++i) {
    send_text(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    CHECK(receive_until(stream, "hello").starts_with("HTTP/1.1 200 OK\r\n"));
  }
  send_text(stream, "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  CHECK(receive_until(stream, "never").size() > 100'000);
  std::byte byte{};
  // The server sent a close_notify before it closed.
  CHECK(stream.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
}

SIM_TEST_CASE_WITH("a client that does not speak TLS is refused and delays no other client",
                   {.workers = {0}}) {
  const Secrets secrets;
  http::ServerOptions options = secrets.options();
  options.limits.head = 1min;
  HttpServer server([](http::Request&, http::Response& response) { (void)response.send("x"); },
                    options);
  net::TcpStream plain = server.connect();
  test::send_text(plain, kGetOverTls);
  CHECK_FALSE(receive_all(plain).starts_with("HTTP"));
  net::TcpStream slow = server.connect();
  test::send_text(slow, "\x16\x03\x01");
  CHECK(receive_all(slow).size() < 16);
  CHECK(server.server().stats().malformed == 2);
}

FIBER_TEST_CASE("the request context ends when a TLS client sends close_notify") {
  const Secrets secrets;
  Event begun;
  Event ended;
  const HttpServer server(
      [&](http::Request& request, http::Response& response) {
        Context& context = request.context();
        begun.set();
        CHECK(wait_for_end(context) == Errc::cancelled);
        ended.set();
        (void)response.send({});
      },
      secrets.options());
  tls::Stream stream = connect(server, secrets);
  send_text(stream, kGetOverTls);
  begun.wait();
  CHECK(stream.shutdown());
  stream.close();
  ended.wait();
}

FIBER_TEST_CASE(
    "the request context ends even if a close_notify arrives before the handler requests the "
    "context") {
  const Secrets secrets;
  Event begun;
  Event gone;
  http::ServerOptions options = secrets.options();
  options.limits.request = 30s;  // Ends the test if the case fails.
  const HttpServer server(
      [&](http::Request& request, http::Response& response) {
        if (request.path() == "/first") {
          begun.set();
          gone.wait();
        } else {
          CHECK(wait_for_end(request.context()) == Errc::cancelled);
        }
        (void)response.send("answer");
      },
      options);
  tls::Stream stream = connect(server, secrets);
  send_text(stream, "GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n");
  begun.wait();
  // The whole request has arrived before the server reads again.
  send_text(stream, kGetOverTls);
  CHECK(stream.shutdown());
  CHECK(stream.tcp().shutdown(net::Shutdown::write));
  gone.set();
  CHECK(receive_until(stream, "answer").ends_with("answer"));
  CHECK(receive_until(stream, "answer").ends_with("answer"));
}

SIM_TEST_CASE_WITH("a stopping TLS server closes idle connections and answers pending requests",
                   {.workers = {0}}) {
  const Secrets secrets;
  Event begun;
  Event go_on;
  HttpServer server(
      [&](http::Request&, http::Response& response) {
        begun.set();
        go_on.wait();
        (void)response.send("done");
      },
      secrets.options());
  std::vector<tls::Stream> idle;
  for (int i = 0; i < 5; ++i) idle.push_back(connect(server, secrets));
  net::TcpStream silent = server.connect();  // Has not begun its handshake.
  tls::Stream busy = connect(server, secrets);
  send_text(busy, kGetOverTls);
  begun.wait();
  auto stopped = spawn([&] { return server.server().shutdown(Deadline::never()); });
  std::byte byte{};
  for (tls::Stream& one : idle) {
    CHECK(one.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
  }
  CHECK(receive_all(silent).empty());
  go_on.set();
  CHECK(receive_until(busy, "done").find("Connection: close\r\n") != std::string::npos);
  CHECK(stopped.join());
}

FIBER_TEST_CASE(
    "the callback of an upgraded TLS connection is called for each line that arrives while the "
    "connection is idle") {
  const Secrets secrets;
  const HttpServer server(
      [](http::Request&, http::Response& response) {
        CHECK(response.upgrade("echo", [](http::Upgraded upgraded) {
          const std::string line = receive_until(upgraded, "\n");
          if (!line.ends_with('\n')) return net::Next::close;
          CHECK_FALSE(upgraded.write_all(std::as_bytes(std::span(line))).error);
          return net::Next::idle;
        }));
      },
      secrets.options());
  tls::Stream stream = connect(server, secrets);
  send_text(stream,
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly\n");
  CHECK(receive_until(stream, "\r\n\r\n").starts_with("HTTP/1.1 101 "));
  CHECK(receive_until(stream, "\n") == "early\n");
  // The layer buffers the rest of a record.
  for (int i = 0; i < 20; ++i) {
    send_text(stream, "one\ntwo\n");
    CHECK(receive_until(stream, "two\n") == "one\ntwo\n");
  }
  CHECK(stream.shutdown());
  std::byte byte{};
  CHECK(stream.read_some(std::span(&byte, 1)).error == Errc::end_of_stream);
}

FIBER_TEST_CASE(
    "an HTTP client uses https, reuses its connection, and refuses a certificate from an unknown "
    "authority") {
  const Secrets secrets;
  const tls::Context context = secrets.make_server_here();
  HttpServer server(
      [](http::Request& request, http::Response& response) {
        if (request.path() == "/down") {
          response.set_status(302);
          response.add_header("Location", "http://127.0.0.1/");
        }
        (void)response.send(std::string(request.host()));
      },
      {.secure = tls::server_layer(context)});
  http::Client client({.secure = tls::client_layer(secrets.client)});
  const std::string port = std::to_string(server.address().port());
  for (int i = 0; i < 5; ++i) {
    auto [reply, error] = client.get("https://127.0.0.1:" + port + "/");
    CHECK_FALSE(error);
    CHECK(reply.read_all().value == "127.0.0.1:" + port);
  }
  CHECK(client.stats().connections == 1);
  auto down = client.get("https://127.0.0.1:" + port + "/down");
  CHECK(down.value.status() == 302);
  CHECK(down.value.url().scheme == "https");
  http::Client stranger({.secure = tls::client_layer(tls::Context::client().value)});
  CHECK(stranger.get("https://127.0.0.1:" + port + "/").error.category() ==
        tls::verification_category());
}

FIBER_TEST_CASE(
    "over TLS, a client receives the error response of a server that does not read the request "
    "body") {
  const Secrets secrets;
  const tls::Context context = secrets.make_server_here();
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  Event over;
  auto server = spawn([&] {
    auto stream = tls::Stream::accept(listener.accept().value, context).value;
    (void)receive_until(stream, "\r\n\r\n");
    send_text(stream, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno");
    over.wait();
  });
  http::Client client({.secure = tls::client_layer(secrets.client)});
  const std::string url = "https://" + listener.local_address().value.to_string() + "/";
  auto [reply, error] =
      client.send({.method = "POST", .url = url, .body = std::string(32 << 20, 'x')});
  CHECK_FALSE(error);
  CHECK(reply.status() == 401);
  CHECK(reply.read_all().value == "no");
  over.set();
  server.join();
}

FIBER_TEST_CASE(
    "a server continues to accept clients when other clients abandon their TLS handshakes") {
  const Secrets secrets;
  http::ServerOptions options;
  options.secure = tls::server_layer(
      tls::Context::server({.certificate_file = secrets.certificates.certificate("server"),
                            .key_file = secrets.certificates.key("server"),
                            .max_handshakes = 2})
          .value);
  HttpServer server([](http::Request&, http::Response& response) { (void)response.send("hello"); },
                    options);
  std::vector<net::TcpStream> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(server.connect());
    send_text(silent.back(), "\x16");
  }
  while (server.server().stats().refused < 1) this_fiber::yield();
  tls::Stream stream = connect(server, secrets);
  send_text(stream, kGetOverTls);
  CHECK(receive_until(stream, "hello").starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(server.server().stats().malformed == 0);
}

FIBER_TEST_CASE(
    "an HTTP handler reads its client's certificate and the connection's ALPN protocol") {
  const Secrets secrets;
  secrets.certificates.make("client", "someone", "someone.test");
  http::ServerOptions options;
  options.secure = tls::server_layer(
      tls::Context::server({.certificate_file = secrets.certificates.certificate("server"),
                            .key_file = secrets.certificates.key("server"),
                            .alpn = {"http/1.1"},
                            .client_authorities_file = secrets.certificates.authority()})
          .value);
  const auto client =
      tls::Context::client({.authorities_file = secrets.certificates.authority(),
                            .alpn = {"http/1.1"},
                            .certificate_file = secrets.certificates.certificate("client"),
                            .key_file = secrets.certificates.key("client")})
          .value;
  std::optional<net::TlsInfo> info;
  const http::Handler look = [&](http::Request& request, http::Response& response) {
    info = request.tls();
    (void)response.send("hello");
  };
  const HttpServer server(look, options);
  auto [stream, error] = tls::Stream::connect(server.connect(), client, "a.test");
  CHECK_FALSE(error);
  send_text(stream, kGetOverTls);
  CHECK(receive_until(stream, "hello").starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(info.has_value());
  CHECK(info->version == "TLSv1.3");
  CHECK(info->cipher.starts_with("TLS_"));
  CHECK(info->server_name == "a.test");
  CHECK(info->alpn == "http/1.1");
  CHECK(info->peer.has_value());
  CHECK(info->peer->subject == "CN = someone");
  CHECK(info->peer->names == std::vector<std::string>{"DNS:someone.test"});
  CHECK(info->peer->der.size() > 100);
  CHECK(info->peer->verified);
  CHECK(stream.info().peer->names == std::vector<std::string>{"DNS:a.test"});

  const HttpServer plain(look);
  net::TcpStream bare = plain.connect();
  send_text(bare, kGet);
  CHECK(receive_answer(bare).status == 200);
  CHECK_FALSE(info.has_value());
}

TEST_SUITE_END();

}  // namespace
