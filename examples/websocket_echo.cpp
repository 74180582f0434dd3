// Serves WebSockets by unmodified Boost.Beast behind an HTTP server: GET /echo becomes a WebSocket,
// which sends back what it receives. A browser that requests / gets a page with a client.
//
//   websocket_echo --listen 127.0.0.1:8080
//
// SIGTERM or Ctrl-C ends the server.
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <cstdio>
#include <stop_token>
#include <string>
#include <string_view>
#include <weft/asio/http.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>

#include "command_line.hpp"

namespace {

namespace websocket = boost::beast::websocket;
using weft::http::Request;
using weft::http::Response;

constexpr std::string_view kPage = R"(<!doctype html><title>echo</title>
<input autofocus><pre></pre>
<script>
const socket = new WebSocket("ws://" + location.host + "/echo");
socket.onmessage = (message) => document.querySelector("pre").textContent += message.data + "\n";
document.querySelector("input").onchange = (event) => {
  socket.send(event.target.value);
  event.target.value = "";
};
</script>
)";

void show_page(Request&, Response& response) {
  response.add_header("Content-Type", "text/html; charset=utf-8");
  (void)response.send(kPage);
}

// Runs in the connection's fiber: the code is sequential, as in a thread.
void echo(const weft::asio::UpgradedStream& stream, const auto& head) {
  websocket::stream<weft::asio::UpgradedStream> socket(stream);
  boost::system::error_code error;
  socket.accept(head, error);  // Answers 101; or 400 if this is no WebSocket handshake.
  while (!error) {
    boost::beast::flat_buffer message;
    socket.read(message, error);  // Parks, and answers pings meanwhile.
    if (error) break;
    socket.text(socket.got_text());
    socket.write(message.data(), error);
  }
}

void upgrade(Request& request, Response& response) {
  const auto talk = [head = weft::asio::to_beast(request)](const weft::http::Upgraded& upgraded) {
    // A stop of the server ends the read.
    const std::stop_callback ending(
        upgraded.stop, [&upgraded] { (void)upgraded.stream.shutdown(weft::net::Shutdown::read); });
    echo(weft::asio::UpgradedStream(upgraded), head);
  };
  // No subprotocol, because Beast answers the handshake.
  if (!response.upgrade({}, talk)) response.set_status(426);
}

int serve(const std::string& where) {
  const auto [address, malformed] = weft::net::Address::parse(where);
  auto [listener, error] = weft::net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "websocket_echo: cannot listen on %s\n", where.c_str());
    return 1;
  }
  const weft::StopOnSignal stop;
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);

  weft::http::Router router;
  router.get("/", show_page).get("/echo", upgrade);
  weft::http::Server server(router, {.grace = std::chrono::seconds(5), .stop = stop.get_token()});
  return server.serve(listener) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("websocket_echo", "WebSockets behind an HTTP server.");
  std::string listen = "127.0.0.1:8080";
  line.add("--listen", listen, "address and port; port 0 lets the system choose");
  return line.run(argc, argv, [&] {
    // Beast has buffers on the stack. Unused stack costs no memory.
    return weft::run({.stack_size = 256 * 1024}, [&] { return serve(listen); });
  });
}
