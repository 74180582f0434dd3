// Generates the load of W15 in bench/compare_net: HTTP requests at a fixed rate, whether or not the
// answers keep up. A latency counts from when its request was due, so that a stall of the server
// also counts for all requests that were due during the stall. The program also measures its own
// lateness: the time from when a request was due to when it was sent, if its connection was free.
//
//   open_loop --connect 127.0.0.1:8080 --rate 2000 --connections 64 --seconds 3
//
// The program has one thread and does not use weft. It prints one line of JSON.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/latency.hpp"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::uint32_t kTimer = UINT32_MAX;
// The longest time that the program waits for the last answers.
constexpr std::chrono::seconds kPatience{5};

struct Options {
  std::string connect;
  double rate = 1000, seconds = 3;
  std::uint32_t connections = 64;
};

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

sockaddr_in parse(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (colon == std::string::npos ||
      inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error(text + " is no address of IPv4 with a port");
  }
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1))));
  return address;
}

double nanoseconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

// One connection: at most one request is in flight, and later requests wait in order.
struct Connection {
  int socket = -1;
  std::deque<Clock::time_point> due;  // The first request is in flight.
  std::string answer;
};

// Returns the length of the answer at the beginning of `text`, or 0 if the answer is incomplete.
std::size_t whole_answer(std::string_view text) {
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return 0;
  std::string head(text.substr(0, end));
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!head.starts_with("http/1.1 200")) throw std::runtime_error("answered " + head);
  const std::size_t length = head.find("content-length:");
  if (length == std::string::npos) throw std::runtime_error("an answer without a length");
  const std::size_t size = end + 4 + std::stoul(head.substr(length + 15));
  return text.size() >= size ? size : 0;
}

class Load {
 public:
  explicit Load(const Options& options)
      : interval_(nanoseconds(static_cast<std::int64_t>(1e9 / options.rate))),
        count_(static_cast<std::size_t>(options.rate * options.seconds)),
        connections_(options.connections) {
    latencies_.reserve(count_);
    const sockaddr_in address = parse(options.connect);
    for (std::uint32_t i = 0; i < options.connections; ++i) open(address, i);
    epoll_event event{.events = EPOLLIN, .data = {.u32 = kTimer}};
    checked(epoll_ctl(poller_, EPOLL_CTL_ADD, timer_, &event), "epoll_ctl");
  }

  void run() {
    start_ = Clock::now() + std::chrono::milliseconds(10);
    const Clock::time_point last = start_ + interval_ * static_cast<std::int64_t>(count_);
    set_timer();
    while (latencies_.size() < count_) {
      if (Clock::now() > last + kPatience) throw std::runtime_error("the answers stay away");
      wait();
      const std::size_t before = sent_;
      send_what_is_due();
      if (sent_ != before && sent_ < count_) set_timer();
    }
  }

  [[nodiscard]] nlohmann::json result() const {
    std::map<std::string, double> metrics;
    add_quantiles(metrics, "", latencies_);
    add_quantiles(metrics, "client_late_", late_);
    metrics["requests"] = static_cast<double>(latencies_.size());
    metrics["requests_per_second"] =
        1e9 * metrics["requests"] / nanoseconds_between(start_, Clock::now());
    return metrics;
  }

 private:
  void open(const sockaddr_in& address, std::uint32_t index) {
    Connection& connection = connections_[index];
    connection.socket = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    const auto* native = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    checked(connect(connection.socket, native, sizeof address), "connect");
    const int on = 1;
    setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    checked(fcntl(connection.socket, F_SETFL, O_NONBLOCK), "fcntl");
    epoll_event event{.events = EPOLLIN, .data = {.u32 = index}};
    checked(epoll_ctl(poller_, EPOLL_CTL_ADD, connection.socket, &event), "epoll_ctl");
  }

  [[nodiscard]] Clock::time_point due(std::size_t number) const {
    return start_ + interval_ * static_cast<std::int64_t>(number);
  }

  void set_timer() const {
    const std::int64_t at = due(sent_).time_since_epoch().count();
    itimerspec when{};
    when.it_value = {.tv_sec = at / 1'000'000'000, .tv_nsec = at % 1'000'000'000};
    checked(timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr), "timerfd_settime");
  }

  void wait() {
    std::array<epoll_event, 256> events{};
    const int count = epoll_wait(poller_, events.data(), static_cast<int>(events.size()), 1000);
    for (int i = 0; i < count; ++i) {
      const std::uint32_t index = events[static_cast<std::size_t>(i)].data.u32;
      if (index != kTimer) {
        receive(connections_[index]);
      } else {
        std::uint64_t times = 0;
        (void)!read(timer_, &times, sizeof times);
      }
    }
  }

  void send_what_is_due() {
    for (; sent_ < count_ && due(sent_) <= Clock::now(); ++sent_) {
      Connection& connection = connections_[sent_ % connections_.size()];
      connection.due.push_back(due(sent_));
      if (connection.due.size() > 1) continue;
      late_.push_back(nanoseconds_between(due(sent_), Clock::now()));
      send(connection);
    }
  }

  static void send(const Connection& connection) {
    const ssize_t sent = ::send(connection.socket, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(kRequest.size())) throw std::runtime_error("a refused send");
  }

  void receive(Connection& connection) {
    std::array<char, 4096> buffer;
    const ssize_t got = recv(connection.socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) throw std::runtime_error("a connection has ended");
    connection.answer.append(buffer.data(), static_cast<std::size_t>(got));
    while (const std::size_t size = whole_answer(connection.answer)) {
      connection.answer.erase(0, size);
      latencies_.push_back(nanoseconds_between(connection.due.front(), Clock::now()));
      connection.due.pop_front();
      if (!connection.due.empty()) send(connection);
    }
  }

  nanoseconds interval_;
  std::size_t count_;
  std::vector<Connection> connections_;
  int poller_ = checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  int timer_ =
      checked(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create");
  Clock::time_point start_;
  std::size_t sent_ = 0;
  std::vector<double> latencies_, late_;
};

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  CLI::App app("Asks an HTTP server at a fixed rate.");
  weft::bench::Options options;
  app.add_option("--connect", options.connect, "address and port")->required();
  app.add_option("--rate", options.rate, "requests a second")->check(CLI::Range(1.0, 1e6));
  app.add_option("--seconds", options.seconds, "how long")->check(CLI::Range(0.01, 3600.0));
  app.add_option("--connections", options.connections)->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  try {
    weft::bench::Load load(options);
    load.run();
    std::cout << load.result() << std::endl;
  } catch (const std::exception& failure) {
    std::cerr << "open_loop: " << failure.what() << std::endl;
    return 1;
  }
  return 0;
}
