// Is a proxy for SOCKS5 and HTTP on one port, with a balancer: for a configured name, it selects
// the server with the fewest connections.
//
//   socks_proxy --listen 127.0.0.1:1080 --balance web=127.0.0.1:9001 web=127.0.0.1:9002
//   curl --proxy socks5h://127.0.0.1:1080 http://web/    (SOCKS5, RFC 1928)
//   curl --proxy http://127.0.0.1:1080 http://web/       (HTTP, one request for a connection)
//
// The proxy resolves other names. It avoids an unreachable server for some seconds.
#include <arpa/inet.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/context.hpp>
#include <weft/mutex.hpp>
#include <weft/net/buffered.hpp>
#include <weft/net/copy.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>

#include "command_line.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::net::BufferedReader;
using weft::net::TcpStream;

constexpr auto kSetup = 10s;  // The time to the first relayed byte.

struct Options {
  std::string listen = "127.0.0.1:1080";
  std::vector<std::string> balance;
  double rest = 5;  // Seconds.
};

struct Server {
  std::string address;
  std::size_t connections = 0;
  Deadline rests_until = Deadline::past();
};

// Holds a connection to a server. The server's count includes the connection while this object
// lives.
struct Connection {
  TcpStream stream;
  std::shared_ptr<Server> counted = {};
};

class Balancer {
 public:
  explicit Balancer(const Options& options) : rest_(options.rest) {
    for (const std::string& item : options.balance) {
      const std::size_t equals = item.find('=');
      if (equals == std::string::npos) throw std::invalid_argument("--balance: NAME=ADDRESS");
      names_[item.substr(0, equals)].push_back(
          std::make_shared<Server>(Server{item.substr(equals + 1)}));
    }
  }

  weft::Result<Connection> connect(const std::string& host, std::uint16_t port) {
    const auto found = names_.find(host);
    if (found == names_.end()) {
      auto [stream, error] = weft::net::dial(host_port(host, port));
      return {{std::move(stream)}, error};
    }
    weft::Result<Connection> last;
    for (std::size_t attempt = 0; attempt < found->second.size(); ++attempt) {
      std::shared_ptr<Server> server = take(found->second);
      auto [stream, error] = weft::net::dial(server->address);
      if (!error) return {{std::move(stream), counted(std::move(server))}};
      last.error = error;
      const std::lock_guard lock(mutex_);
      --server->connections;
      server->rests_until = Deadline::after(rest_);
    }
    return last;
  }

 private:
  static std::string host_port(const std::string& host, std::uint16_t port) {
    return (host.find(':') < host.size() ? '[' + host + ']' : host) + ':' + std::to_string(port);
  }

  // Returns the server with the fewest connections; an avoided server only if all are avoided.
  std::shared_ptr<Server> take(const std::vector<std::shared_ptr<Server>>& servers) {
    const std::lock_guard lock(mutex_);
    const auto best = std::ranges::min_element(servers, {}, [](const auto& server) {
      return std::pair(!server->rests_until.passed(), server->connections);
    });
    ++(*best)->connections;
    return *best;
  }

  std::shared_ptr<Server> counted(std::shared_ptr<Server> server) {
    Server* const raw = server.get();
    return {raw, [this, server = std::move(server)](Server*) {
              const std::lock_guard lock(mutex_);
              --server->connections;
            }};
  }

  const std::chrono::duration<double> rest_;
  weft::Mutex mutex_;  // Guards the counts and rest times.
  std::map<std::string, std::vector<std::shared_ptr<Server>>> names_;
};

// Returns the SOCKS5 answer to a request, without a bound address.
std::string socks_answer(char code) { return {5, code, 0, 1, 0, 0, 0, 0, 0, 0}; }

std::uint16_t port_in(std::string_view bytes) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[0]) * 256U +
                                    static_cast<unsigned char>(bytes[1]));
}

// Reads the name in a request, or the text of its address.
std::optional<std::string> read_host(BufferedReader& reader, char kind) {
  if (kind == 3) {
    const auto [size, cut] = reader.read_exactly(1);
    if (cut) return {};
    const auto [name, error] = reader.read_exactly(static_cast<unsigned char>(size[0]));
    if (error) return {};
    return std::string(name);
  }
  if (kind != 1 && kind != 4) return {};
  const auto [bytes, error] = reader.read_exactly(kind == 1 ? 4U : 16U);
  if (error) return {};
  const int family = kind == 1 ? AF_INET : AF_INET6;
  char text[INET6_ADDRSTRLEN] = {};
  if (::inet_ntop(family, bytes.data(), text, sizeof text) == nullptr) return {};
  return std::string(text);
}

std::optional<Connection> connect_by_socks(BufferedReader& reader, TcpStream& client,
                                           Balancer& balancer) {
  const auto [greeting, cut] = reader.read_exactly(2);
  if (cut) return {};
  const auto [methods, unread] = reader.read_exactly(static_cast<unsigned char>(greeting[1]));
  if (unread) return {};
  const bool is_open = methods.find('\0') != std::string_view::npos;  // No password is needed.
  if (client.write_all(is_open ? std::string_view("\5\0", 2) : "\5\xff").error) return {};
  if (!is_open) return {};
  const auto [head, missing] = reader.read_exactly(4);
  if (missing || head[0] != 5) return {};
  const char command = head[1];
  const auto host = read_host(reader, head[3]);
  if (!host) return {};
  const auto [port, no_port] = reader.read_exactly(2);
  if (no_port) return {};
  if (command != 1) return (void)client.write_all(socks_answer(7)), std::nullopt;
  auto [server, error] = balancer.connect(*host, port_in(port));
  const char failure = error == std::errc::connection_refused ? 5 : 4;
  if (client.write_all(socks_answer(error ? failure : char{0})).error || error) return {};
  return std::move(server);
}

// Passes "http://host:80/path" on as "/path"; answers a CONNECT.
std::optional<Connection> connect_by_http(BufferedReader& reader, TcpStream& client,
                                          Balancer& balancer) {
  const auto refuse = [&](std::string_view why) {
    (void)client.write_all("HTTP/1.1 " + std::string(why) + "\r\n\r\n");
    return std::nullopt;
  };
  const auto [first, cut] = reader.read_line();
  if (cut) return {};
  const std::string line(first);
  const std::size_t begin = line.find(' ') + 1;
  const std::size_t end = line.find(' ', begin);
  if (begin == 0 || end == std::string::npos) return refuse("400 Bad Request");
  std::string target = line.substr(begin, end - begin);
  std::string head;
  const bool is_tunnel = line.starts_with("CONNECT ");
  if (!is_tunnel) {
    constexpr std::string_view kScheme = "http://";
    if (!target.starts_with(kScheme)) return refuse("400 Bad Request");
    const std::size_t path = std::min(target.find('/', kScheme.size()), target.size());
    head = line.substr(0, begin) + (path == target.size() ? "/" : target.substr(path)) +
           line.substr(end) + "\r\nConnection: close\r\n";
    target = target.substr(kScheme.size(), path - kScheme.size());
    if (target.find(':') == std::string::npos) target += ":80";
  }
  for (;;) {
    const auto [header, error] = reader.read_line();
    if (error) return {};
    if (header.empty()) break;
    std::string name(header.substr(0, header.find(':')));
    std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    if (name != "connection" && !name.starts_with("proxy-")) (head += header) += "\r\n";
  }
  const auto [where, malformed] = weft::net::parse_host_port(target);
  if (malformed) return refuse("400 Bad Request");
  auto [server, error] = balancer.connect(where.host, where.port);
  if (error) return refuse("502 Bad Gateway");
  const bool is_begun = is_tunnel ? !client.write_all("HTTP/1.1 200 OK\r\n\r\n").error
                                  : !server.stream.write_all(head += "\r\n").error;
  return is_begun ? std::optional(std::move(server)) : std::nullopt;
}

void talk(TcpStream& client, Balancer& balancer) {
  BufferedReader reader(client, {.longest = 16'384});
  // The timeout bounds all waits below, although the calls get no `Until`.
  auto server = weft::with_timeout(kSetup, [&]() -> std::optional<Connection> {
    const auto [first, error] = reader.peek(1);
    if (error) return {};
    if (first[0] == 5) return connect_by_socks(reader, client, balancer);
    return connect_by_http(reader, client, balancer);
  });
  if (!server || server->stream.write_all(reader.buffered()).error) return;
  (void)weft::net::relay(client, server->stream);
}

int serve(const Options& options) {
  const weft::StopOnSignal stop;
  Balancer balancer(options);
  auto [listener, error] =
      weft::net::TcpListener::listen(weft::net::Address::parse(options.listen).value);
  if (error) throw std::system_error(error, options.listen);
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  return weft::net::serve(listener, {.grace = 0s, .stop = stop.get_token()},
                          [&](TcpStream& client) { talk(client, balancer); })
             ? 0
             : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("socks_proxy", "A proxy for SOCKS5 and HTTP, with a balancer.");
  Options options;
  line.add("--listen", options.listen, "address and port; port 0 lets the system choose");
  line.add("--balance", options.balance, "servers of a name: web=127.0.0.1:9001");
  line.add("--rest", options.rest, "seconds without connections for a server that fails");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(options); }); });
}
