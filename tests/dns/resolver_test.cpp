#include <weft/dns/resolver.hpp>

#include <netdb.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/net/datagram_socket.hpp>
#include <weft/sim.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::Address;
using net::TcpListener;
using net::UdpSocket;

TEST_SUITE_BEGIN("dns/resolver");

namespace {

// The answers depend on the name alone.
constexpr int kMany = 100;  // Addresses of many.test: too many for a datagram.

std::string number(unsigned value) {
  return {static_cast<char>(value >> 8U), static_cast<char>(value & 255U)};
}

// "host.test" from "\4host\4test\0", at the beginning of a question.
std::string name_of(std::string_view question) {
  std::string name;
  for (std::size_t at = 0; at < question.size() && question[at] != 0;) {
    const auto size = static_cast<std::size_t>(static_cast<unsigned char>(question[at]));
    name.append(name.empty() ? "" : ".").append(question.substr(at + 1, size));
    at += size + 1;
  }
  return name;
}

struct Question {
  std::string name;
  bool is_v6 = false;
};

// Returns the answer to `query`, or nothing; stores the question in `asked`.
std::string answer_to(std::string_view query, bool may_be_long, Question& asked) {
  const std::string_view text = query.substr(12);
  asked.name = name_of(text);
  const std::size_t size = asked.name.size() + 2;  // The size in the message.
  asked.is_v6 = text[size + 1] == 28;
  const bool is_many = asked.name == "many.test";
  if (asked.name.starts_with("silent.")) return {};
  if (asked.name == (asked.is_v6 ? "only4.test" : "only6.test")) return {};
  unsigned flags = 0x8180;  // An answer of a recursive server.
  std::vector<std::string> records;
  if (asked.name == "broken.test") {
    flags |= 2U;
  } else if (asked.name == "host.test") {
    records.push_back(asked.is_v6 ? std::string("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16)
                                  : std::string("\xc0\0\2\1", 4));
  } else if (asked.name == "only6.test" || (asked.name == "late4.test" && asked.is_v6)) {
    records.push_back(std::string(15, '\0') + '\1');
  } else if (asked.name == "here.test" || asked.name.ends_with("4.test")) {
    if (!asked.is_v6) records.push_back(std::string("\x7f\0\0\1", 4));
  } else if (is_many && !may_be_long) {
    flags |= 0x200U;  // Truncated: ask by TCP.
  } else if (is_many && !asked.is_v6) {
    for (int i = 0; i < kMany; ++i) {
      records.push_back(std::string("\xc0\0\2", 3) + static_cast<char>(i));
    }
  } else if (!is_many && asked.name != "empty.test") {
    flags |= 3U;  // There is no such name.
  }
  std::string answer(query.substr(0, 2));
  answer += number(flags) + number(1) + number(static_cast<unsigned>(records.size())) + number(0) +
            number(0);
  answer += text.substr(0, size + 4);
  for (const std::string& data : records) {  // The name at byte 12, valid for a minute.
    answer += number(0xc00c) + number(asked.is_v6 ? 28 : 1) + number(1) + number(0) + number(60) +
              number(static_cast<unsigned>(data.size())) + data;
  }
  return answer;
}

// Runs a name server on loopback, over UDP and TCP.
class NameServer {
 public:
  NameServer() {
    std::error_code error;
    do {  // Until one port is free for UDP and TCP.
      tcp_ = listen_anywhere();
      auto bound = UdpSocket::bind(tcp_.local_address().value);
      udp_ = std::move(bound.value);
      error = bound.error;
    } while (error == std::errc::address_in_use);
    CHECK(error == std::error_code{});
    by_udp_ = spawn([this] { answer_datagrams(); });
    by_tcp_ = spawn([this] { answer_streams(); });
  }
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  ~NameServer() {
    udp_.close();
    tcp_.close();
  }

  [[nodiscard]] Address address() const { return tcp_.local_address().value; }
  // The questions that the server has received.
  Channel<Question> asked{1000};

 private:
  void answer_datagrams() {
    std::string buffer(512, '\0');
    // The server answers only the second question for late4.test's IPv4 address.
    bool is_late_asked = false;
    for (;;) {
      const auto [received, error] = udp_.receive(std::as_writable_bytes(std::span(buffer)));
      if (error) return;
      Question question;
      const auto answer =
          answer_to(std::string_view(buffer).substr(0, received.size), false, question);
      (void)asked.try_send(question);
      if (question.name == "late4.test" && !question.is_v6 && !std::exchange(is_late_asked, true)) {
        continue;
      }
      if (!answer.empty()) CHECK(udp_.send_to(bytes(answer), received.from));
    }
  }
  void answer_streams() {
    for (;;) {
      auto [stream, error] = tcp_.accept();
      if (error) return;
      for (;;) {
        const std::string size = read_text(stream, 2);
        if (size.size() < 2) break;
        const std::string query = read_text(stream, static_cast<unsigned char>(size[1]));
        Question question;
        const auto answer = answer_to(query, true, question);
        (void)stream.write_all(bytes(number(static_cast<unsigned>(answer.size())) + answer));
      }
    }
  }

  TcpListener tcp_;
  UdpSocket udp_;
  JoinHandle<void> by_udp_;
  JoinHandle<void> by_tcp_;
};

bool has(const std::vector<Address>& all, const Address& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}
Address address(std::string_view text) { return Address::parse(text).value; }

// Returns options with timeouts so long that no answer is late, however slow the machine is.
dns::ResolverOptions patient(std::vector<Address> servers) {
  return {.servers = std::move(servers), .attempt_time = 5min, .resolution_delay = 5min};
}

}  // namespace

FIBER_TEST_CASE(
    "the resolver returns the IPv4 and IPv6 addresses that the name server has for a name") {
  NameServer server;
  dns::Resolver resolver(patient({server.address()}));
  const auto [found, error] = resolver.resolve("host.test", 80);
  CHECK(error == std::error_code{});
  CHECK(found.size() == 2);
  CHECK(has(found, address("192.0.2.1:80")));
  CHECK(has(found, address("[2001:db8::1]:80")));
  CHECK(resolver.resolve("127.0.0.1", 8).value.at(0) == Address::loopback_v4(8));
  CHECK(resolver.resolve("::1", 8).value.at(0) == Address::loopback_v6(8));
}

FIBER_TEST_CASE(
    "the resolver returns the same error codes as getaddrinfo when it finds no address") {
  NameServer server;
  dns::Resolver resolver(patient({server.address()}));
  const auto answer = [&](std::string_view name) { return resolver.resolve(name, 80).error; };
  const auto code = [](int value) { return std::error_code(value, net::resolver_category()); };
  CHECK(answer("none.test.") == code(EAI_NONAME));
  CHECK(answer("empty.test.") == code(EAI_NODATA));
  CHECK(answer("broken.test.") == code(EAI_AGAIN));
  CHECK(answer({"localhost\0.test", 15}) == std::errc::invalid_argument);
}

FIBER_TEST_CASE("a deadline or a stop request ends a query to a silent name server") {
  NameServer server;
  dns::Resolver resolver(patient({server.address()}));
  CHECK(resolver.resolve("silent.test", 80, Deadline::after(20ms)).error == Errc::timed_out);
  CHECK(resolver.resolve("silent.test", 80, Deadline::past()).error == Errc::timed_out);
  std::stop_source stop;
  auto caller = spawn([&] { return resolver.resolve("silent.again", 80, stop.get_token()).error; });
  while (server.asked.receive()->name != "silent.again") {
  }
  (void)stop.request_stop();
  CHECK(caller.join() == Errc::cancelled);
  CHECK(resolver.resolve("silent.test", 80, stop.get_token()).error == Errc::cancelled);
  CHECK_FALSE(resolver.resolve("host.test", 80).error);
}

FIBER_TEST_CASE(
    "the resolver tries the next server after a silent server, and fails after the last server") {
  NameServer server;
  auto [deaf, error] = UdpSocket::bind(Address::loopback_v4(0));
  CHECK(error == std::error_code{});
  const Address nobody = deaf.local_address().value;
  dns::Resolver both({.servers = {nobody, server.address()}, .attempt_time = 20ms, .attempts = 10});
  CHECK(has(both.resolve("here.test", 80).value, Address::loopback_v4(80)));
  dns::Resolver alone({.servers = {nobody}, .attempt_time = 1ms, .attempts = 2});
  const auto given_up = std::error_code(EAI_AGAIN, net::resolver_category());
  CHECK(alone.resolve("here.test.", 80).error == given_up);
}

FIBER_TEST_CASE(
    "the resolver waits only briefly for the second address family once the first has arrived") {
  NameServer server;
  // A caller that waits for this attempt waits for five minutes.
  dns::Resolver resolver({.servers = {server.address()}, .attempt_time = 5min});
  CHECK(resolver.resolve("only4.test", 80).value == std::vector{address("127.0.0.1:80")});
  CHECK(resolver.resolve("only6.test", 80).value == std::vector{address("[::1]:80")});
  TcpListener listener = listen_anywhere();
  const std::string port = std::to_string(listener.local_address().value.port());
  CHECK_FALSE(net::dial("only4.test:" + port, {.resolver = &resolver}).error);
  // The delay does not limit the first answer.
  CHECK(resolver.resolve("silent.test", 80, Deadline::after(80ms)).error == Errc::timed_out);
}

FIBER_TEST_CASE("an answer that is too long for a datagram arrives over TCP") {
  NameServer server;
  dns::Resolver resolver(patient({server.address()}));
  const auto [found, error] = resolver.resolve("many.test", 80);
  CHECK(error == std::error_code{});
  CHECK(found.size() == kMany);
  CHECK(has(found, address("192.0.2.99:80")));
}

FIBER_TEST_CASE("fibers and plain threads can have many queries pending at once") {
  NameServer server;
  dns::Resolver resolver(patient({server.address()}));
  std::stop_source stop;
  std::vector<JoinHandle<std::error_code>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(
        spawn([&] { return resolver.resolve("silent.test", 80, stop.get_token()).error; }));
  }
  for (int i = 0; i < 100; ++i) (void)server.asked.receive();
  CHECK_FALSE(resolver.resolve("host.test", 80).error);
  (void)stop.request_stop();
  for (auto& one : silent) CHECK(one.join() == Errc::cancelled);
}

THREAD_TEST_CASE(
    "a plain thread may resolve names while a runtime exists, and a deadline or a stop request "
    "ends its wait") {
  NameServer server;
  dns::Resolver resolver(patient({server.address()}));
  CHECK(resolver.resolve("silent.test", 80, Deadline::after(5ms)).error == Errc::timed_out);
  std::stop_source stop;
  go([stop]() mutable { (void)stop.request_stop(); });
  CHECK(resolver.resolve("silent.test", 80, stop.get_token()).error == Errc::cancelled);
  CHECK(has(resolver.resolve("host.test", 80).value, address("192.0.2.1:80")));
}

TEST_CASE("the resolver returns an error when no runtime exists") {
  dns::Resolver resolver;
  CHECK(resolver.resolve("host.test", 80).error == Errc::no_runtime);
}

FIBER_TEST_CASE(
    "the resolver resolves the names in /etc/hosts from that file, as getaddrinfo does") {
  auto [deaf, error] = UdpSocket::bind(Address::loopback_v4(0));
  CHECK(error == std::error_code{});
  dns::Resolver resolver(patient({deaf.local_address().value}));
  net::Resolver system;
  std::ifstream hosts("/etc/hosts");
  std::string line;
  while (std::getline(hosts, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host;
    std::string name;
    if (!(words >> host >> name)) continue;
    const auto literal = system.resolve(host, 80, Deadline::past());
    if (literal.error || host.find('%') != std::string::npos) continue;
    // The call must not wait, because the server would never answer.
    CHECK(has(resolver.resolve(name, 80, Deadline::past()).value, literal.value.at(0)));
    CHECK(has(system.resolve(name, 80).value, literal.value.at(0)));
  }
}

FIBER_TEST_CASE("dial() uses the resolver that the caller passes") {
  NameServer server;
  dns::Resolver resolver(patient({server.address()}));
  TcpListener listener = listen_anywhere();
  const std::string port = std::to_string(listener.local_address().value.port());
  auto [stream, error] = net::dial("here.test:" + port, {.resolver = &resolver});
  CHECK(error == std::error_code{});
  CHECK(stream.peer_address().value == listener.local_address().value);
  CHECK(net::dial("none.test:80", {.resolver = &resolver}).error.category() ==
        net::resolver_category());
}

// No server listens at the address that comes first.
FIBER_TEST_CASE(
    "dial() waits for the addresses of the second address family and tries these addresses") {
  NameServer server;
  dns::Resolver resolver({.servers = {server.address()}, .attempt_time = 5min});
  TcpListener listener = listen_anywhere();
  const Address here = listener.local_address().value;
  auto [stream, error] =
      net::dial("late4.test:" + std::to_string(here.port()), {.resolver = &resolver});
  CHECK(error == std::error_code{});
  CHECK(stream.peer_address().value == here);
  // Returns which kind of address is missing, or nothing if neither can be missing.
  const std::vector v6{Address::loopback_v6(80)};
  const std::vector v4{address("127.0.0.1:80")};
  CHECK(resolver.resolve_rest("late4.test", v6).value == v4);
  CHECK(resolver.resolve_rest("late4.test", v4).value == v6);
  CHECK(resolver.resolve_rest("late4.test", std::vector{v6[0], v4[0]}).value.empty());
  CHECK(resolver.resolve_rest("127.0.0.1", v4).value.empty());
  CHECK(resolver.resolve_rest("localhost", v4).value.empty());
  CHECK(resolver.resolve_rest("late4.test", {}).value.empty());
  CHECK(resolver.resolve_rest("only4.test", v4, Deadline::after(1ms)).error == Errc::timed_out);
}

TEST_CASE("the resolver resolves the name of a simulated host") {
  const TestGuard guard("the resolver resolves a host of a simulation");
  sim::explore({.seeds = 1}, [](sim::World& world) {
    world.host("bank", [] {});
    dns::Resolver resolver({.servers = {address("10.9.9.9:53")}});
    const auto found = resolver.resolve("bank", 80);
    CHECK(found.value == std::vector{address("10.0.0.2:80")});
    CHECK(resolver.resolve_rest("bank", found.value).value.empty());
    CHECK(resolver.resolve("stranger.test", 80).error.category() == net::resolver_category());
    CHECK(world.now() < 1s);
  });
}

TEST_SUITE_END();
