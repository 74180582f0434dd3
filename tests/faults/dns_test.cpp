// Tests faults while names are looked up and their addresses are dialled.
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/dns/resolver.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/tcp_listener.hpp>

#include "tests/faults/other_side.hpp"
#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/dns");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::net::Address;
using weft::net::TcpListener;
using weft::test::Call;
using weft::test::demand;
using weft::test::Documented;
using weft::test::expect_none;
using weft::test::kShort;
using weft::test::sweep_in_runtime;

constexpr int kMany = 100;  // Addresses of long.test: too many for a datagram.

// Runs a name server without faults, as a thread of the process that starts the failing processes.
// Each name except none.test and long.test has the loopback device's IPv4 and IPv6 addresses.
class NameServer {
 public:
  NameServer() {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    do {  // Until one port is free for UDP and TCP.
      if (datagrams_ >= 0) ::close(datagrams_);
      datagrams_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      own.sin_port = 0;
      (void)::bind(datagrams_, reinterpret_cast<const sockaddr*>(&own), size);
      (void)::getsockname(datagrams_, reinterpret_cast<sockaddr*>(&own), &size);
      if (streams_ >= 0) ::close(streams_);
      streams_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    } while (::bind(streams_, reinterpret_cast<const sockaddr*>(&own), size) != 0);
    (void)::listen(streams_, 100);
    port_ = ntohs(own.sin_port);
    (void)::pipe(end_.data());
    thread_ = std::thread([this] { serve(); });
  }
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  ~NameServer() {
    (void)!::write(end_[1], "", 1);
    thread_.join();
    for (const int each : {datagrams_, streams_, end_[0], end_[1]}) ::close(each);
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  static std::string number(unsigned value) {
    return {static_cast<char>(value >> 8U), static_cast<char>(value & 255U)};
  }
  static std::string answer_to(std::string_view query, bool may_be_long) {
    const std::string_view question = query.substr(12);
    const std::size_t size = question.find('\0') + 5;  // The name, its kind, its class.
    const bool is_v6 = question[size - 3] == 28;
    unsigned flags = 0x8180;  // An answer of a recursive server.
    std::vector<std::string> records;
    if (question.starts_with("\4none")) {
      flags |= 3U;  // There is no such name.
    } else if (!question.starts_with("\4long")) {
      records.push_back(is_v6 ? std::string(15, '\0') + '\1' : std::string("\x7f\0\0\1", 4));
    } else if (!may_be_long) {
      flags |= 0x200U;  // Truncated: ask by TCP.
    } else {
      for (int i = 0; i < kMany && !is_v6; ++i) {
        records.push_back(std::string("\xc0\0\2", 3) + static_cast<char>(i));
      }
    }
    std::string answer(query.substr(0, 2));
    answer += number(flags) + number(1) + number(static_cast<unsigned>(records.size())) +
              number(0) + number(0);
    answer += question.substr(0, size);
    for (const std::string& data : records) {  // The name at byte 12, valid for a minute.
      answer += number(0xc00c) + number(is_v6 ? 28 : 1) + number(1) + number(0) + number(60) +
                number(static_cast<unsigned>(data.size())) + data;
    }
    return answer;
  }

  void serve() const {
    for (;;) {
      std::array<pollfd, 3> wanted{
          {{datagrams_, POLLIN, 0}, {streams_, POLLIN, 0}, {end_[0], POLLIN, 0}}};
      (void)::poll(wanted.data(), wanted.size(), -1);
      if (wanted[2].revents != 0) return;
      if (wanted[0].revents != 0) answer_datagram();
      // Each connection has a thread, because a client with a fault may be silent for a long time.
      if (wanted[1].revents != 0) {
        std::thread(&NameServer::answer_stream, ::accept(streams_, nullptr, nullptr)).detach();
      }
    }
  }
  void answer_datagram() const {
    std::array<char, 512> query{};
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    const ssize_t count = ::recvfrom(datagrams_, query.data(), query.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &size);
    if (count < 17) return;
    const std::string answer = answer_to({query.data(), static_cast<std::size_t>(count)}, false);
    (void)::sendto(datagrams_, answer.data(), answer.size(), 0,
                   reinterpret_cast<const sockaddr*>(&from), size);
  }
  static void answer_stream(int stream) {
    for (;;) {
      std::array<char, 514> query{};
      if (::recv(stream, query.data(), 2, MSG_WAITALL) != 2) break;
      const auto size = static_cast<std::size_t>(static_cast<unsigned char>(query[1]));
      if (::recv(stream, query.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) break;
      const std::string answer = answer_to({query.data(), size}, true);
      const std::string all = number(static_cast<unsigned>(answer.size())) + answer;
      (void)::send(stream, all.data(), all.size(), MSG_NOSIGNAL);
    }
    ::close(stream);
  }

  int datagrams_ = -1;
  int streams_ = -1;
  std::array<int, 2> end_{};
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// The process that runs the name server sets this port.
std::uint16_t server_port = 0;

// The timeouts are long, so that a slow server does not count as lost.
weft::dns::ResolverOptions options() {
  return {.servers = {Address::loopback_v4(server_port)}, .attempt_time = 3s, .attempts = 3};
}

std::error_code answer(int code) { return {code, weft::net::resolver_category()}; }

void ask(std::string_view name, std::size_t most) {
  weft::dns::Resolver resolver(options());
  const auto [found, error] = resolver.resolve(name, 80, Deadline::after(20s));
  expect_none(error);
  demand(!found.empty() && found.size() <= most, "a name has its addresses");
}
void by_datagram() { ask("host.test", 2); }
void by_stream() { ask("long.test", kMany); }
void of_hosts() {
  weft::dns::Resolver resolver(options());
  const auto [found, error] = resolver.resolve("localhost", 80, Deadline::after(20s));
  expect_none(error);
  demand(found.at(0) == Address::loopback_v4(80) || found.at(0) == Address::loopback_v6(80),
         "localhost is here");
}
void none() {
  weft::dns::Resolver resolver(options());
  const auto [found, error] = resolver.resolve("none.test.", 80, Deadline::after(20s));
  demand(bool(error), "what is not there has no address");
  if (error != answer(EAI_NONAME)) expect_none(error);
}

// The results into which c-ares converts the system's errors: a server that cannot be reached or
// read from counts as silent.
const Documented kAnswers = {answer(EAI_AGAIN), answer(EAI_FAIL), answer(EAI_MEMORY),
                             std::make_error_code(std::errc::not_enough_memory)};

TEST_CASE("the c-ares resolver returns the addresses or the error when a system call fails") {
  const NameServer server;
  server_port = server.port();
  for (const auto scenario : {&by_datagram, &by_stream, &none}) {
    sweep_in_runtime(scenario,
                     {{Call::open_file, EMFILE},
                      {Call::make_socket, EMFILE},
                      {Call::make_socket, EMFILE, 100},
                      {Call::connect_socket, ENETUNREACH},
                      {Call::set_option, ENOBUFS},
                      {Call::control_file, EINVAL},
                      {Call::create_epoll, EMFILE},
                      {Call::control_epoll, ENOSPC},
                      {Call::control_epoll, ENOMEM},
                      {Call::wait_epoll, EINTR, 3},
                      {Call::receive, EINTR},
                      {Call::receive, EAGAIN},
                      {Call::receive, kShort, 50},
                      {Call::receive, ECONNRESET},
                      {Call::send, EINTR},
                      {Call::send, EAGAIN},
                      {Call::send, kShort, 50},
                      {Call::send, EPIPE},
                      {Call::close_file, EINTR}},
                     kAnswers);
  }
}
TEST_CASE("the c-ares resolver returns the addresses or an error when an allocation fails") {
  const NameServer server;
  server_port = server.port();
  for (const auto scenario : {&by_datagram, &by_stream, &none, &of_hosts}) {
    sweep_in_runtime(scenario, {{Call::allocate, ENOMEM}, {Call::allocate_in_dns, ENOMEM}},
                     kAnswers);
  }
}

// Dials three addresses: the first two refuse; the third accepts.
void dial_all() {
  auto [listener, refused] = TcpListener::listen(Address::loopback_v4(0));
  expect_none(refused);
  const auto [here, unknown] = listener.local_address();
  expect_none(unknown);
  const std::array all{Address::loopback_v6(1), Address::loopback_v4(1), here};
  auto [stream, error] = weft::net::dial(all, Deadline::after(20s));
  expect_none(error);
}
// Dials several addresses; the resolver returns the only address with a server later.
void dial_late() {
  struct Late final : weft::net::AnyResolver {
    explicit Late(const Address& address) : here(address) {}
    weft::net::Result<std::vector<Address>> look_up(const std::string&, std::uint16_t,
                                                    const weft::Until&) override {
      return {.value = {Address::loopback_v6(1)}};
    }
    weft::net::Result<std::vector<Address>> look_up_rest(const std::string&,
                                                         std::span<const Address>,
                                                         const weft::Until&) override {
      return {.value = {Address::loopback_v4(1), here}};
    }
    Address here;
  };
  auto [listener, refused] = TcpListener::listen(Address::loopback_v4(0));
  expect_none(refused);
  const auto [here, unknown] = listener.local_address();
  expect_none(unknown);
  Late resolver(here);
  auto [stream, error] =
      weft::net::dial("host.test:1", {.resolver = &resolver}, Deadline::after(20s));
  expect_none(error);
}
// Dials a name, after a lookup of its addresses.
void dial_name() {
  auto [listener, refused] = TcpListener::listen(Address::loopback_v4(0));
  expect_none(refused);
  const auto [here, unknown] = listener.local_address();
  expect_none(unknown);
  weft::dns::Resolver resolver(options());
  auto [stream, error] = weft::net::dial("host.test:" + std::to_string(here.port()),
                                         {.resolver = &resolver}, Deadline::after(20s));
  expect_none(error);
}
void dial_by_system() {
  auto [listener, refused] = TcpListener::listen(Address::loopback_v4(0));
  expect_none(refused);
  const auto [here, unknown] = listener.local_address();
  expect_none(unknown);
  weft::net::Resolver resolver({.idle_time = 1ms});
  auto [stream, error] = weft::net::dial("localhost:" + std::to_string(here.port()),
                                         {.resolver = &resolver}, Deadline::after(20s));
  expect_none(error);
}

// If no address has a server, the error of the first failed address is reported.
Documented kDialled() {
  Documented errors = weft::test::of_other_side({{ECONNREFUSED, std::system_category()},
                                                 {ENETUNREACH, std::system_category()},
                                                 {EADDRNOTAVAIL, std::system_category()},
                                                 {EAFNOSUPPORT, std::system_category()}});
  errors.insert(errors.end(), kAnswers.begin(), kAnswers.end());
  return errors;
}

TEST_CASE("dial() reaches one of several addresses or returns an error when a call fails") {
  const NameServer server;
  server_port = server.port();
  for (const auto scenario : {&dial_all, &dial_late, &dial_name, &dial_by_system}) {
    sweep_in_runtime(scenario,
                     {{Call::make_socket, EMFILE},
                      {Call::make_socket, EMFILE, 100},
                      {Call::connect_socket, EINTR},
                      {Call::connect_socket, ENETUNREACH},
                      {Call::get_option, ENOBUFS},
                      {Call::set_option, ENOBUFS},
                      {Call::control_epoll, ENOSPC},
                      {Call::start_thread, EAGAIN},
                      {Call::map, ENOMEM},
                      {Call::close_file, EINTR},
                      {Call::allocate, ENOMEM},
                      {Call::allocate_in_dns, ENOMEM}},
                     kDialled());
  }
}

}  // namespace

TEST_SUITE_END();
