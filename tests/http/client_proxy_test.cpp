// Tests a client that reaches servers through a proxy.
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>
#include <weft/mutex.hpp>
#include <weft/net/buffered.hpp>
#include <weft/net/copy.hpp>
#include <weft/net/serve.hpp>

#include "tests/http/plain_layer.hpp"
#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

// Answers with the target of the request.
void tell(http::Request& request, http::Response& response) {
  (void)response.send(std::string(request.target()) + ' ' + std::string(request.host()) + ' ' +
                      std::string(request.header("Proxy-Authorization").value_or("none")));
}

http::NewLayer make_clear_layer(net::TcpStream& stream, const std::string& host, const Until&) {
  CHECK(host == "example.test");
  return {.value = std::make_unique<PlainLayer>(stream)};
}

// Opens all tunnels to one server, whatever host the client requests.
class TunnelProxy {
 public:
  TunnelProxy(net::Address to, std::string answer)
      : listener_(net::TcpListener::listen(net::Address::loopback_v4(0)).value),
        url_("http://" + listener_.local_address().value.to_string()),
        server_([this, to, answer](net::TcpStream& client) { tunnel(client, to, answer); }),
        loop_(weft::spawn([this] { return server_.serve(listener_); })) {}
  ~TunnelProxy() {
    (void)server_.shutdown(Deadline::past());
    CHECK(loop_.join());
  }
  [[nodiscard]] const std::string& url() const { return url_; }
  // Returns the head of the last request.
  [[nodiscard]] std::string head() const {
    const std::lock_guard lock(mutex_);
    return head_;
  }

 private:
  void tunnel(net::TcpStream& client, net::Address to, const std::string& answer) {
    net::BufferedReader reader(client);
    std::string text;
    for (;;) {
      const auto [line, error] = reader.read_line();
      if (error) return;
      if (line.empty()) break;
      text.append(line).append("\n");
    }
    {
      const std::lock_guard lock(mutex_);
      head_ = text;
    }
    if (client.write_all(answer).error) return;
    auto [server, error] = net::TcpStream::connect(to);
    if (!error) (void)net::relay(client, server);
  }

  net::TcpListener listener_;
  const std::string url_;
  mutable Mutex mutex_;
  std::string head_;
  net::Server server_;
  JoinHandle<Result<void>> loop_;
};

TEST_SUITE_BEGIN("http/client_proxy");

FIBER_TEST_CASE("a client sends its proxy the complete URL when it requests an http URL") {
  const HttpServer proxy(&tell);
  const std::string url = "http://" + proxy.address().to_string();
  http::Client client({.proxy = url, .proxy_authorization = "Basic eA=="});
  CHECK(client.get("http://example.test/a?b").value.read_all().value ==
        "http://example.test/a?b example.test Basic eA==");
  CHECK(client.get("http://example.test:81/").value.read_all().value ==
        "http://example.test:81/ example.test:81 Basic eA==");
  http::Client open({.proxy = url});
  CHECK(open.get("http://[::1]:9/").value.read_all().value == "http://[::1]:9/ [::1]:9 none");
}

FIBER_TEST_CASE("a client sends a request for an https URL through a tunnel that its proxy opens") {
  const HttpServer origin(&tell);
  const TunnelProxy proxy(origin.address(), "HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 200 Fine\r\n\r\n");
  http::Client client(
      {.secure = &make_clear_layer, .proxy = proxy.url(), .proxy_authorization = "Basic eA=="});
  for (int i = 0; i < 2; ++i) {
    CHECK(client.get("https://example.test/a?b").value.read_all().value ==
          "/a?b example.test none");
  }
  CHECK(client.stats().connections == 1);
  CHECK(proxy.head() ==
        "CONNECT example.test:443 HTTP/1.1\nHost: example.test:443\n"
        "Proxy-Authorization: Basic eA==\n");
}

FIBER_TEST_CASE("a request fails when the client's proxy does not open a tunnel") {
  const HttpServer refusing(&tell);  // This server does not support CONNECT.
  const auto error_of = [](const std::string& url) {
    http::Client client({.secure = &make_clear_layer, .proxy = url});
    return client.get("https://example.test/").error;
  };
  CHECK(error_of("http://" + refusing.address().to_string()) == http::Errc::refused_by_proxy);
  const TunnelProxy early(refusing.address(), "HTTP/1.1 200 Fine\r\n\r\nbytes");
  CHECK(error_of(early.url()) == http::Errc::malformed_start);
  const TunnelProxy wrong(refusing.address(), "nonsense\r\n\r\n");
  CHECK(error_of(wrong.url()) == http::ErrorKind::malformed);
  for (const char* const url : {"https://a", "a", "http://a b"}) {
    CHECK_THROWS_AS(http::Client({.proxy = url}), std::invalid_argument);
  }
  CHECK_THROWS_AS(http::Client({.proxy = "http://a", .proxy_authorization = "a\r\nb"}),
                  std::invalid_argument);
}

TEST_SUITE_END();

}  // namespace
