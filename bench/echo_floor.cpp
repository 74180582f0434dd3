// A minimal server: one thread over edge-triggered epoll, without fibers. bench/compare_net
// compares weft's servers with it, to show which part of their time is the kernel's.
//
//   echo_floor --port 7777            sends back what it is sent
//   echo_floor --port 7777 --hello    answers HTTP requests with 13 bytes
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "bench/hello.hpp"

namespace {

int check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::system_category(), what);
  return result;
}

constexpr std::uint32_t kHangUp = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

// One connection, with the bytes that could not be sent yet.
struct Connection {
  int descriptor;
  std::vector<char> unsent;
  weft::bench::RequestEnds ends;
};

enum class Answer : std::uint8_t { echo, hello };

class EchoFloor {
 public:
  EchoFloor(std::uint16_t port, Answer answer)
      : answer_(answer),
        epoll_(check(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        listener_(
            check(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket")) {
    const int on = 1;
    check(::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "SO_REUSEADDR");
    check(::setsockopt(listener_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    check(::bind(listener_, generic, size), "bind");
    check(::listen(listener_, 4096), "listen");
    check(::getsockname(listener_, generic, &size), "getsockname");
    port_ = ntohs(address.sin_port);

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    check(::sigprocmask(SIG_BLOCK, &signals, nullptr), "sigprocmask");
    signals_ = check(::signalfd(-1, &signals, SFD_CLOEXEC), "signalfd");
    watch(signals_, EPOLLIN, &signals_);
    watch(listener_, EPOLLIN, &listener_);
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  // Serves until SIGINT or SIGTERM.
  void serve() {
    std::array<epoll_event, 128> events;
    for (;;) {
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      if (count < 0 && errno != EINTR) check(count, "epoll_wait");
      for (int i = 0; i < count; ++i) {
        const epoll_event event = events[static_cast<std::size_t>(i)];
        void* who = event.data.ptr;
        if (who == &signals_) return;
        if (who == &listener_) {
          accept_all();
        } else {
          serve(*static_cast<Connection*>(who), (event.events & kHangUp) != 0);
        }
      }
    }
  }

  void print_summary() const {
    std::printf("connections %llu\nrequests %llu\nrefusals 0\n",
                static_cast<unsigned long long>(connections_count_),
                static_cast<unsigned long long>(requests_));
  }

 private:
  void watch(int descriptor, std::uint32_t what, void* who) {
    epoll_event event{};
    event.events = what;
    event.data.ptr = who;
    check(::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
  }

  void accept_all() {
    for (;;) {
      const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor < 0) return;
      auto connection = std::make_unique<Connection>(Connection{descriptor, {}, {}});
      watch(descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, connection.get());
      connections_[descriptor] = std::move(connection);
      ++connections_count_;
    }
  }

  void close(Connection& connection) {
    const int descriptor = connection.descriptor;
    connections_.erase(descriptor);
    ::close(descriptor);
  }

  // Sends as much as the kernel takes. Returns false if the connection is broken.
  static bool send(Connection& connection, const char* data, std::size_t size, std::size_t& sent) {
    const ssize_t result = ::send(connection.descriptor, data, size, MSG_NOSIGNAL);
    sent = result > 0 ? static_cast<std::size_t>(result) : 0;
    return result >= 0 || errno == EAGAIN;
  }

  // Returns the bytes to be sent, which are valid until the next call.
  std::string_view answer_to(Connection& connection, std::string_view received) {
    if (answer_ == Answer::echo) return received;
    const std::size_t requests = connection.ends.count_in(received);
    if (requests == 1) return weft::bench::kHello;
    several_.clear();
    for (std::size_t i = 0; i < requests; ++i) several_ += weft::bench::kHello;
    return several_;
  }

  void serve(Connection& connection, bool hung_up) {
    std::size_t sent = 0;
    if (!connection.unsent.empty()) {
      if (!send(connection, connection.unsent.data(), connection.unsent.size(), sent)) {
        return close(connection);
      }
      connection.unsent.erase(connection.unsent.begin(),
                              connection.unsent.begin() + static_cast<std::ptrdiff_t>(sent));
      if (!connection.unsent.empty()) return;
    }
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t result = ::recv(connection.descriptor, buffer.data(), buffer.size(), 0);
      if (result < 0 && errno == EAGAIN) return;
      if (result <= 0) return close(connection);
      const auto received = static_cast<std::size_t>(result);
      ++requests_;
      const std::string_view answer = answer_to(connection, {buffer.data(), received});
      if (!send(connection, answer.data(), answer.size(), sent)) return close(connection);
      if (sent < answer.size()) {
        connection.unsent.assign(answer.begin() + static_cast<std::ptrdiff_t>(sent), answer.end());
        return;
      }
      // A short read has emptied the socket: more bytes will cause another edge. But this edge may
      // already have reported the end of the stream.
      if (received < buffer.size() && !hung_up) return;
    }
  }

  const Answer answer_;
  std::string several_;
  int epoll_;
  int listener_;
  int signals_ = -1;
  std::uint16_t port_ = 0;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::uint64_t connections_count_ = 0;
  std::uint64_t requests_ = 0;
};

// Reads an optional `--port N` (default 7777), then an optional `--hello`. Returns false if it
// cannot parse the arguments.
bool read_arguments(int argc, char** argv, std::uint16_t& port, Answer& answer) {
  if (argc > 1 && std::string_view(argv[argc - 1]) == "--hello") {
    answer = Answer::hello;
    --argc;
  }
  if (argc == 1) return true;
  if (argc != 3 || std::string_view(argv[1]) != "--port") return false;
  const std::string_view text = argv[2];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  std::uint16_t port = 7777;
  Answer answer = Answer::echo;
  if (!read_arguments(argc, argv, port, answer)) {
    std::fputs("usage: echo_floor [--port N] [--hello]   0 to 65535; 0 lets the system choose\n",
               stderr);
    return 2;
  }
  try {
    EchoFloor server(port, answer);
    std::printf("listening on 127.0.0.1:%u\n", static_cast<unsigned>(server.port()));
    std::fflush(stdout);
    server.serve();
    server.print_summary();
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "echo_floor: %s\n", error.what());
    return 1;
  }
}
