// Tests servers behind proxies, and proxies of this library.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/reverse_proxy.hpp>
#include <weft/http/server.hpp>
#include <weft/http/websocket.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/this_fiber.hpp>

#include "tests/http/plain_layer.hpp"
#include "tests/support/http_test.hpp"
#include "tests/support/refusing_port.hpp"
#include "tests/support/sim_test.hpp"

namespace weft::test {

namespace {

using namespace std::chrono_literals;

// Answers with the client's address and scheme, as a handler sees them.
void say_client(http::Request& request, http::Response& response) {
  const auto [address, error] = request.client_address();
  const std::string text = error ? "unknown" : address.to_string();
  (void)response.send(text.substr(0, text.rfind(':')) + " " + std::string(request.scheme()));
}

// Keeps the connection until the answer has come: the server treats a client that closes its side
// as gone.
Answer ask_kept(const HttpServer& server, std::string_view request) {
  net::TcpStream stream = server.connect();
  return ask_once(stream, request);
}

std::string client_seen(const HttpServer& server, std::string_view headers,
                        std::string_view before = {}) {
  const std::string head = std::string(before) + "GET / HTTP/1.1\r\nHost: a\r\n";
  return ask_kept(server, head + std::string(headers) + "\r\n").body;
}

std::string origin_of(const HttpServer& server) { return "http://" + server.address().to_string(); }

std::string origin_of(const RefusingPort& port) { return "http://" + port.address().to_string(); }

http::Handler say_number(int number) {
  return [number](http::Request& request, http::Response& response) {
    (void)response.send(std::to_string(number) + request.read_all().value);
  };
}

}  // namespace

TEST_SUITE_BEGIN("http/proxies");

FIBER_TEST_CASE("a server uses only X-Forwarded-For entries that trusted proxies have added") {
  const HttpServer server(
      say_client, {.trusted_proxies = {.networks = {"127.0.0.1", "10.0.0.0/8", "fd00::/8"}}});
  const auto seen = [&server](std::string_view headers) { return client_seen(server, headers); };
  CHECK(seen("") == "127.0.0.1 http");
  CHECK(seen("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: HTTPS\r\n") == "192.0.2.1 https");
  // The server ignores the client's own item, which precedes the item of the first trusted proxy.
  CHECK(seen("X-Forwarded-For: 10.9.9.9, 192.0.2.1\r\n") == "192.0.2.1 http");
  CHECK(seen("X-Forwarded-For: evil\r\nX-Forwarded-For: 192.0.2.1,10.0.0.2, fd00::3\r\n") ==
        "192.0.2.1 http");
  CHECK(seen("X-Forwarded-For: 10.0.0.1, 10.0.0.2\r\n") == "10.0.0.1 http");
  CHECK(seen("X-Forwarded-For: [2001:db8::1]:443\r\n") == "[2001:db8::1] http");
  CHECK(seen("X-Forwarded-For: 192.0.2.1:99\r\n") == "192.0.2.1 http");
  CHECK(seen("X-Forwarded-For: unknown\r\n") == "unknown http");
  CHECK(seen("X-Forwarded-For: 192.0.2.1, unknown\r\n") == "unknown http");
  CHECK(seen("X-Forwarded-For: fe80::1%1\r\n") == "unknown http");
  CHECK(seen("X-Forwarded-For: \", 203.0.113.5\r\n") == "203.0.113.5 http");
  // The server takes the scheme at the position of the address, or the last scheme.
  CHECK(seen("X-Forwarded-For: 9.9.9.9, 192.0.2.1, 10.0.0.2\r\n"
             "X-Forwarded-Proto: http, https, http\r\n") == "192.0.2.1 https");
  CHECK(seen("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http, https\r\n") ==
        "192.0.2.1 https");
  CHECK(seen("X-Forwarded-Proto: javascript\r\n") == "127.0.0.1 http");
  // A header of the other kind comes from the client.
  CHECK(seen("Forwarded: for=10.1.1.1;proto=https\r\n") == "127.0.0.1 http");
  const HttpServer careful(say_client, {.trusted_proxies = {.networks = {"10.0.0.0/8"}}});
  CHECK(client_seen(careful, "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n") ==
        "127.0.0.1 http");
}

FIBER_TEST_CASE("a server uses only Forwarded entries that trusted proxies have added") {
  const HttpServer server(say_client,
                          {.trusted_proxies = {.networks = {"127.0.0.1", "10.0.0.0/8"},
                                               .headers = http::ForwardingHeaders::forwarded}});
  const auto seen = [&server](std::string_view headers) { return client_seen(server, headers); };
  CHECK(seen("Forwarded: for=192.0.2.1;proto=https;by=_x\r\n") == "192.0.2.1 https");
  CHECK(seen("Forwarded: For=\"[2001:db8::1]:47\" ; Proto=http\r\n") == "[2001:db8::1] http");
  CHECK(seen("Forwarded: for=10.7.7.7;proto=https, for=192.0.2.1, for=10.0.0.2;proto=https\r\n") ==
        "192.0.2.1 http");
  CHECK(seen("Forwarded: host=\"a,for=10.0.0.1\";for=192.0.2.1\r\n") == "192.0.2.1 http");
  CHECK(seen("Forwarded: host=\"\\\",for=10.0.0.1;x=\\\"\";for=192.0.2.1\r\n") == "192.0.2.1 http");
  CHECK(seen("Forwarded: for=unknown\r\n") == "unknown http");
  CHECK(seen("Forwarded: for=192.0.2.1;for=10.0.0.1\r\n") == "unknown http");
  CHECK(seen("Forwarded: proto=https\r\n") == "unknown https");
  CHECK(seen("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n") == "127.0.0.1 http");
}

FIBER_TEST_CASE(
    "a server reads a PROXY header before TLS and HTTP, and uses the address in the header as the "
    "peer's") {
  const std::string header = "PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\n";
  for (const http::ServerLayer& secure :
       {http::ServerLayer(), http::ServerLayer(make_plain_layer)}) {
    HttpServer server(say_client, {.secure = secure,
                                   .proxy_protocol = {.networks = {"127.0.0.1"}},
                                   .trusted_proxies = {.networks = {"192.0.2.0/24"}}});
    CHECK(client_seen(server, "", header) == "192.0.2.1 http");
    CHECK(client_seen(server, "X-Forwarded-For: 198.51.100.1\r\n", header) == "198.51.100.1 http");
    CHECK(client_seen(server, "X-Forwarded-For: 198.51.100.1\r\n",
                      "PROXY TCP4 203.0.113.1 192.0.2.2 4711 80\r\n") == "203.0.113.1 http");
    // The header applies to each request of its connection, however late.
    net::TcpStream stream = server.connect();
    send_text(stream, header);
    CHECK(ask_once(stream, kGet).body == "192.0.2.1 http");
    CHECK(ask_once(stream, kGet).body == "192.0.2.1 http");
    net::TcpStream wrong = server.connect();
    send_text(wrong, kGet);
    CHECK(receive_all(wrong).empty());
    CHECK(server.server().stats().malformed == 1);
    CHECK(server.server().stats().requests == 5);
  }
}

FIBER_TEST_CASE("a reverse proxy keeps the forwarding headers that its server trusts") {
  const HttpServer origin([](http::Request& request, http::Response& response) {
    std::string all;
    for (const auto& [name, value] : request.headers()) {
      if (name.find("orwarded") != std::string_view::npos) {
        all.append(name).append(": ").append(value).append("\n");
      }
    }
    (void)response.send(all);
  });
  http::ReverseProxy proxy({.origins = {origin_of(origin)}});
  const std::string_view headers =
      "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\n"
      "Forwarded: for=evil\r\n";
  const std::string own = "Forwarded: for=127.0.0.1;host=\"a\";proto=http\n";
  const HttpServer trusting(std::ref(proxy), {.trusted_proxies = {.networks = {"127.0.0.1"}}});
  CHECK(client_seen(trusting, headers) ==
        own +
            "X-Forwarded-For: 192.0.2.1, 127.0.0.1\nX-Forwarded-Host: a\n"
            "X-Forwarded-Proto: https\n");
  CHECK(client_seen(trusting, "X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n")
            .ends_with("X-Forwarded-Proto: https, http\n"));
  const HttpServer careful(std::ref(proxy), {.trusted_proxies = {.networks = {"10.0.0.0/8"}}});
  CHECK(client_seen(careful, headers) ==
        own + "X-Forwarded-For: 127.0.0.1\nX-Forwarded-Host: a\nX-Forwarded-Proto: http\n");
}

FIBER_TEST_CASE(
    "a reverse proxy spreads requests over its origins and retries after a refused connection") {
  std::vector<std::string> errors;
  const HttpServer first(say_number(1));
  const HttpServer second(say_number(2));
  const RefusingPort refusing;
  http::ReverseProxy proxy(
      {.origins = {origin_of(refusing), origin_of(first), origin_of(second)},
       .rest = 1h,
       .on_error = [&](const http::Request& request, std::string_view origin, std::error_code) {
         errors.push_back(std::string(request.method()) + " " + std::string(origin));
       }});
  const HttpServer server(std::ref(proxy));
  http::Client client;
  const auto ask_for = [&](http::Call call) {
    call.url = origin_of(server) + "/";
    auto reply = client.send(call);
    CHECK_FALSE(reply.error);
    return reply.value.read_all().value;
  };
  // A server that refuses the connection has received nothing, so the proxy also repeats a POST.
  CHECK(ask_for({.method = "POST", .body = "a"}).ends_with('a'));
  std::string all;
  for (int i = 0; i < 4; ++i) all += ask_for({});
  CHECK(std::count(all.begin(), all.end(), '1') == 2);
  CHECK(std::count(all.begin(), all.end(), '2') == 2);
  CHECK(errors == std::vector<std::string>{"POST " + proxy.origins()[0].origin});
  CHECK(proxy.origins()[0].rests);
  CHECK(proxy.origins()[0].failures == 1);
  CHECK(proxy.origins()[1].requests + proxy.origins()[2].requests == 5);
  CHECK(proxy.origins()[1].running == 0);
}

FIBER_TEST_CASE("a reverse proxy does not repeat a request that a server may have handled") {
  int handled = 0;
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const std::string broken = "http://" + listener.local_address().value.to_string();
  auto serving = spawn([&] {
    for (;;) {
      auto [stream, error] = listener.accept();
      if (error) return;
      (void)receive_until(stream, "\r\n\r\n");
      ++handled;
    }
  });
  const HttpServer good(say_number(1));
  const auto status_of = [&](const std::string& request) {
    http::ReverseProxy proxy({.origins = {broken, origin_of(good)}});
    const HttpServer server(std::ref(proxy));
    const int status = ask_kept(server, request).status;
    CHECK(proxy.origins()[0].failures == 1);
    return status;
  };
  const std::string rest = " / HTTP/1.1\r\nHost: a\r\nContent-Length: ";
  CHECK(status_of("GET" + rest + "0\r\n\r\n") == 200);
  CHECK(status_of("POST" + rest + "0\r\n\r\n") == 502);
  CHECK(status_of("PUT" + rest + "2\r\n\r\nab") == 502);  // The body has been read.
  listener.close();
  serving.join();
  CHECK(handled == 3);
}

FIBER_TEST_CASE("a reverse proxy answers with 502 or 504 when no origin answers") {
  const RefusingPort first;
  const RefusingPort second;
  http::ReverseProxy dead({.origins = {origin_of(first), origin_of(second)}});
  const HttpServer nobody(std::ref(dead));
  CHECK(ask_kept(nobody, kGet).status == 502);
  CHECK(dead.origins()[1].failures == 1);
  net::TcpListener silent = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  http::ReverseProxy slow({.origins = {"http://" + silent.local_address().value.to_string()}});
  http::ServerOptions options;
  options.limits.request = 20ms;
  const HttpServer server(std::ref(slow), options);
  CHECK(ask_kept(server, kGet).status == 504);
  CHECK(slow.origins()[0].failures == 1);
}

SIM_TEST_CASE(
    "a reverse proxy temporarily skips an origin that accepts connections but never answers") {
  const HttpServer silent([](http::Request& request, http::Response& response) {
    (void)wait_for_end(request.context());
    CHECK_FALSE(response.started());
  });
  const HttpServer well(say_number(1));
  const std::vector<std::string> both = {origin_of(silent), origin_of(well)};
  http::ReverseProxy proxy({.origins = both, .answer = 2s, .rest = 1min});
  const HttpServer server(std::ref(proxy));
  const auto began = world.now();
  for (int i = 0; i < 4; ++i) CHECK(ask_kept(server, kGet).body == "1");
  CHECK(world.now() - began >= 2s);
  CHECK(world.now() - began < 3s);
  CHECK(proxy.origins()[0].failures == 1);
  CHECK(proxy.origins()[0].rests);
  // The proxy does not repeat a request with a body.
  http::ReverseProxy alone({.origins = {origin_of(silent)}, .answer = 2s});
  const HttpServer front(std::ref(alone));
  CHECK(ask_kept(front, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx").status == 504);
  CHECK(alone.origins()[0].failures == 1);
  CHECK(world.now() - began < 6s);
}

FIBER_TEST_CASE("a reverse proxy and a client forward OPTIONS * unchanged") {
  const HttpServer origin([](http::Request& request, http::Response& response) {
    (void)response.send(std::string(request.method()) + " " + std::string(request.path()));
  });
  http::ReverseProxy proxy({.origins = {origin_of(origin)}});
  const HttpServer server(std::ref(proxy));
  CHECK(ask_kept(server, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").body == "OPTIONS *");
  CHECK(ask_kept(server, "OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n").body == "OPTIONS /");
  http::Client client;
  for (const auto& [path, target] : {std::pair{"", "*"}, {"/", "/"}, {"?a", "/"}}) {
    auto [reply, error] = client.send({.method = "OPTIONS", .url = origin_of(server) + path});
    CHECK_FALSE(error);
    CHECK(reply.read_all().value == std::string("OPTIONS ") + target);
  }
}

FIBER_TEST_CASE(
    "a failed health check removes an origin from a reverse proxy, and a passed check restores the "
    "origin") {
  std::atomic<bool> is_good = false;
  std::atomic<int> checks = 0;
  const HttpServer sick([&](http::Request& request, http::Response& response) {
    if (request.path() == "/health") {
      ++checks;
      response.set_status(is_good ? 204 : 500);
    } else {
      (void)response.send("sick");
    }
  });
  const HttpServer well(say_number(1));
  http::ReverseProxy proxy({.origins = {origin_of(sick), origin_of(well)},
                            .health = {.target = "/health", .every = 1ms, .wait = 10s}});
  const HttpServer server(std::ref(proxy));
  while (proxy.origins()[0].is_healthy) this_fiber::sleep_for(1ms);
  for (int i = 0; i < 4; ++i) CHECK(ask_kept(server, kGet).body == "1");
  is_good = true;
  while (!proxy.origins()[0].is_healthy) this_fiber::sleep_for(1ms);
  std::string all;
  for (int i = 0; i < 4; ++i) all += ask_kept(server, kGet).body;
  CHECK(all.find("sick") != std::string::npos);
  CHECK(checks >= 2);
}

FIBER_TEST_CASE(
    "a reverse proxy forwards WebSockets to http and https origins, and forwards refusals "
    "unchanged") {
  const HttpServer origin([](http::Request& request, http::Response& response) {
    if (request.path() != "/socket") {
      response.set_status(401);
      response.add_header("WWW-Authenticate", "Basic realm=\"a\"");
      if (request.path() == "/chunked") {
        (void)response.write("chunked ");
        (void)response.write("refusal");
      } else {
        (void)response.send("refusal");
      }
      return;
    }
    CHECK(http::accept_websocket(request, response, [](http::WebSocket& socket) {
      for (;;) {
        const auto [message, error] = socket.receive();
        if (error || !socket.send_text(message.data)) return;
      }
    }));
  });
  const auto plain = [](net::TcpStream& stream, const std::string& host,
                        const Until&) -> http::NewLayer {
    CHECK(host == "127.0.0.1");
    return {.value = std::make_unique<PlainLayer>(stream)};
  };
  const std::string place = origin.address().to_string();
  for (const std::string scheme : {"http", "https"}) {
    http::ReverseProxy proxy({.origins = {scheme + "://" + place}, .client = {.secure = plain}});
    HttpServer server(std::ref(proxy));
    const std::string base = "://" + server.address().to_string();
    const auto [socket, error] = http::open_websocket({.url = "ws" + base + "/socket"});
    CHECK_FALSE(error);
    if (socket != nullptr) {
      const std::string large(100000, 'x');
      CHECK(socket->send_text("hello"));
      CHECK(socket->receive().value.data == "hello");
      CHECK(socket->send_text(large));
      CHECK(socket->receive().value.data == large);
      CHECK(socket->close());
    }
    for (const std::string path : {"/sized", "/chunked"}) {
      net::TcpStream stream = server.connect();
      send_text(stream, "GET " + path +
                            " HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\n"
                            "Upgrade: websocket\r\n\r\n");
      const std::string answer = receive_all(stream);
      CHECK(answer.starts_with("HTTP/1.1 401 "));
      CHECK(answer.find("\r\nWWW-Authenticate: Basic realm=\"a\"\r\n") != std::string::npos);
      CHECK(answer.find("refusal") != std::string::npos);
    }
    CHECK(server.stop(Deadline::never()));
  }
}

TEST_CASE("a reverse proxy refuses invalid options") {
  const auto refuses = [](http::ReverseProxyOptions options) {
    CHECK_THROWS_AS(http::ReverseProxy{std::move(options)}, std::invalid_argument);
  };
  refuses({});
  for (const char* origin : {"127.0.0.1:80", "http://a/", "http://a/b", "http://a?b", "http://a#b",
                             "ftp://a", "https://a"}) {
    refuses({.origins = {origin}});
  }
  refuses({.origins = {"http://a"}, .health = {.target = "health"}});
  refuses({.origins = {"http://a"}, .health = {.target = "/", .every = 0ns}});
  refuses({.origins = {"http://a"}, .answer = 0ns});
  refuses({.origins = {"http://a"}, .rest = -1ns});
}

TEST_SUITE_END();

}  // namespace weft::test
