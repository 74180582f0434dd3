// A chat room for browsers, by WebSocket, and for terminals, by TCP: the room sends each member's
// lines to all members.
//
//   chat --listen 127.0.0.1:8080 --lines 127.0.0.1:8081
//
// A browser that requests / gets a page with a client; "nc 127.0.0.1 8081" is another client, whose
// first line is its name. The room drops a member whose socket buffer is full, so the room never
// waits. A WebSocket member costs only a record: between two messages it has neither fiber nor
// stack. SIGTERM or Ctrl-C ends the program.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/http/error.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/http/websocket.hpp>
#include <weft/mutex.hpp>
#include <weft/net/buffered.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>

#include "command_line.hpp"

namespace {

using weft::Deadline;
using weft::http::Message;
using weft::http::Request;
using weft::http::Response;
using weft::http::WebSocket;

constexpr std::size_t kLongestName = 20;
constexpr std::size_t kLongestLine = 1000;

constexpr std::string_view kPage = R"html(<!doctype html><meta charset="utf-8"><title>chat</title>
<pre id="room"></pre><input id="line" autofocus placeholder="say something">
<script>
const name = prompt("Your name?") || "guest";
const socket = new WebSocket(`ws://${location.host}/room?name=${encodeURIComponent(name)}`);
const show = (text) => document.querySelector("#room").textContent += text + "\n";
socket.onmessage = (message) => show(message.data);
socket.onclose = () => show("(the room is closed)");
document.querySelector("#line").onchange = (event) => {
  socket.send(event.target.value);
  event.target.value = "";
};
</script>
)html";

// Keeps the members of the room. Any fiber may call the functions.
class Room {
 public:
  // Sends a line without waiting; returns false if it cannot.
  using Deliver = std::function<bool(std::string_view line)>;

  // Returns the member's number, which leave() takes.
  std::uint64_t enter(const std::string& name, Deliver deliver) {
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = ++last_;
      members_.emplace(number, Member{name, std::move(deliver)});
    }
    say("* " + name + " enters");
    return number;
  }

  void leave(std::uint64_t number) {
    std::string name;
    {
      const std::lock_guard lock(mutex_);
      const auto found = members_.find(number);
      if (found == members_.end()) return;
      name = found->second.name;
      members_.erase(found);
    }
    say("* " + name + " leaves");
  }

  // All members get the same lines in the same order.
  void say(const std::string& line) {
    std::vector<std::string> dropped;
    {
      const std::lock_guard lock(mutex_);
      for (auto at = members_.begin(); at != members_.end();) {
        if (at->second.deliver(line)) {
          ++at;
        } else {
          dropped.push_back(at->second.name);
          at = members_.erase(at);
        }
      }
    }
    for (const std::string& name : dropped) say("* " + name + " leaves");
  }

 private:
  struct Member {
    std::string name;
    Deliver deliver;
  };

  weft::Mutex mutex_;
  std::map<std::uint64_t, Member> members_;
  std::uint64_t last_ = 0;
};

std::string name_from(std::string_view text) {
  std::string name(text.substr(0, kLongestName));
  std::erase_if(name, [](char byte) { return byte <= ' ' || byte > '~'; });
  return name.empty() ? "guest" : name;
}

void enter_by_websocket(Room& room, Request& request, Response& response) {
  struct Visit {
    std::string name;
    std::uint64_t number = 0;
  };
  const auto visit =
      std::make_shared<Visit>(Visit{name_from(request.query_value("name").value_or(""))});
  weft::http::WebSocketHandlers handlers;
  handlers.on_open = [&room, visit](const std::shared_ptr<WebSocket>& socket) {
    visit->number = room.enter(visit->name, [socket](std::string_view line) {
      const std::error_code error = socket->send_text(line, Deadline::past());
      // A line from a terminal may not be valid UTF-8.
      if (!error || error == weft::http::Errc::malformed_frame) return true;
      weft::go([socket] { (void)socket->close(1008, "too slow"); });
      return false;
    });
  };
  handlers.on_message = [&room, visit](WebSocket&, const Message& message) {
    if (message.is_text) room.say(visit->name + ": " + message.data);
  };
  handlers.on_close = [&room, visit](WebSocket&) { room.leave(visit->number); };
  (void)weft::http::accept_websocket(request, response, std::move(handlers),
                                     {.message_bytes = kLongestLine});
}

void enter_by_lines(Room& room, weft::net::TcpStream& stream) {
  weft::net::BufferedReader reader(stream, {.longest = kLongestLine});
  const auto first = reader.read_line();
  if (first.error) return;
  const std::string name = name_from(first.value);
  // The room drops its reference to the stream before this call returns.
  const std::uint64_t number = room.enter(name, [&stream](std::string_view line) {
    const std::string text = std::string(line) + "\n";
    const bool is_sent = !stream.write_all(text, Deadline::past()).error;
    if (!is_sent) stream.close();
    return is_sent;
  });
  for (;;) {
    const auto [line, error] = reader.read_line();
    if (error) break;
    room.say(name + ": " + std::string(line));
  }
  room.leave(number);
}

weft::net::TcpListener listen_at(const std::string& where) {
  auto [listener, error] = weft::net::TcpListener::listen(weft::net::Address::parse(where).value);
  if (error) std::fprintf(stderr, "chat: cannot listen on %s\n", where.c_str());
  return std::move(listener);
}

int serve(const std::string& listen, const std::string& lines) {
  auto browsers = listen_at(listen);
  auto terminals = listen_at(lines);
  if (!browsers.is_open_hint() || !terminals.is_open_hint()) return 1;
  const weft::StopOnSignal stop;
  const std::chrono::seconds grace(5);
  Room room;
  weft::http::Router router;
  router.get("/", [](Request&, Response& response) {
    response.add_header("Content-Type", "text/html; charset=utf-8");
    (void)response.send(kPage);
  });
  router.get("/room", [&room](Request& request, Response& response) {
    enter_by_websocket(room, request, response);
  });
  weft::http::Server server(router, {.grace = grace, .stop = stop.get_token()});
  // There is no grace period, because fibers that read from silent members would use all of it.
  weft::net::Server line_server(
      [&room](weft::net::TcpStream& stream) { enter_by_lines(room, stream); },
      {.grace = std::chrono::seconds(0), .stop = stop.get_token()});
  std::printf("listening on %s %s\n", browsers.local_address().value.to_string().c_str(),
              terminals.local_address().value.to_string().c_str());
  std::fflush(stdout);
  auto serving_lines = weft::spawn([&] { return line_server.serve(terminals); });
  const bool has_served = static_cast<bool>(server.serve(browsers));
  line_server.stop();
  return serving_lines.join() && has_served ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("chat", "A chat room for browsers and terminals.");
  std::string listen = "127.0.0.1:8080";
  std::string lines = "127.0.0.1:8081";
  line.add("--listen", listen, "address and port for browsers; port 0 lets the system choose");
  line.add("--lines", lines, "address and port for clients that send lines");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(listen, lines); }); });
}
