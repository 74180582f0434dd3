// A server that sheds load: a pool handles so many requests at once, a few more may wait, and
// whoever comes then is answered 503 at once, rather than late or never. The clients are in the
// same process; each sends one request when it pleases, and some come back when they were refused.
//
//   shed_load --clients 200 --capacity 8 --queue 4 --request-ms 20
#include <fmt/core.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

using weft::Deadline;
using weft::net::Address;
using weft::net::TcpListener;
using weft::net::TcpStream;

struct Options {
  unsigned clients = 200;
  std::size_t capacity = 8;
  std::size_t queue = 4;
  unsigned request_milliseconds = 20;
  unsigned attempts = 3;
};

constexpr std::string_view kRequest = "GET / HTTP/1.0\r\n\r\n";
constexpr std::string_view kOk = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
constexpr std::string_view kBusy =
    "HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void check(std::error_code error) {
  if (error) throw std::system_error(error);
}

class Server {
 public:
  explicit Server(const Options& options)
      : options_(options),
        pool_({.capacity = options.capacity,
               .queue_capacity = options.queue,
               .on_full = weft::OnFull::reject,
               .name = "requests"}) {
    auto [listener, error] = TcpListener::listen(Address::loopback_v4(0));
    check(error);
    listener_ = std::move(listener);
    serving_ = weft::spawn([this] { serve(); });
  }
  ~Server() { listener_.close(); }  // The handle then joins, and the pool after it.

  [[nodiscard]] Address address() const { return listener_.local_address().value; }
  [[nodiscard]] std::size_t most_at_once() const { return most_at_once_; }
  [[nodiscard]] weft::PoolStats stats() const { return pool_.stats(); }

 private:
  void serve() {
    for (;;) {
      auto [stream, error] = listener_.accept();
      if (error == weft::Errc::closed) return;
      check(error);
      // Shared, because a callable is moved from even if the pool refuses it.
      auto connection = std::make_shared<TcpStream>(std::move(stream));
      if (!pool_.submit([this, connection] { handle(*connection); })) continue;
      // Little work: the answer fits into the socket, and nobody waits for the client.
      weft::go([connection] { answer(*connection, kBusy); });
    }
  }

  void handle(TcpStream& connection) {
    const std::size_t busy = pool_.stats().busy;
    std::size_t most = most_at_once_;
    while (most < busy && !most_at_once_.compare_exchange_weak(most, busy)) {
    }
    weft::this_fiber::sleep_for(std::chrono::milliseconds(options_.request_milliseconds));
    answer(connection, kOk);
  }

  // Reads what was asked first: a connection that is closed with unread bytes is reset.
  static void answer(TcpStream& connection, std::string_view text) {
    const Deadline patience = Deadline::after(std::chrono::seconds(10));
    std::array<std::byte, kRequest.size()> request;
    if (connection.read_exactly(request, patience).error) return;
    (void)connection.write_all(bytes_of(text), patience);
  }

  const Options& options_;
  std::atomic<std::size_t> most_at_once_{0};
  weft::FiberPool pool_;
  TcpListener listener_;
  weft::JoinHandle<void> serving_;  // Ends first: it uses all the others.
};

// The status of one request.
int ask(const Address& server) {
  auto [stream, error] = TcpStream::connect(server);
  check(error);
  check(stream.write_all(bytes_of(kRequest)).error);
  std::array<std::byte, 12> status;  // HTTP/1.0 200
  check(stream.read_exactly(status).error);
  return std::stoi(std::string(reinterpret_cast<const char*>(status.data()) + 9, 3));
}

struct Outcome {
  std::atomic<unsigned> served{0};
  std::atomic<unsigned> refused{0};
  std::atomic<unsigned> gave_up{0};
  weft::PoolStats stats;
  std::size_t most_at_once = 0;
};

void run_clients(const Options& options, Outcome& outcome) {
  Server server(options);
  weft::TaskGroup clients;
  for (unsigned i = 0; i < options.clients; ++i) {
    clients.spawn([&] {
      for (unsigned attempt = 1; attempt <= options.attempts; ++attempt) {
        const int status = ask(server.address());
        if (status == 200) {
          ++outcome.served;
          return;
        }
        if (status != 503) throw std::logic_error("an answer that nobody sends");
        ++outcome.refused;
        weft::this_fiber::sleep_for(attempt *
                                    std::chrono::milliseconds(options.request_milliseconds));
      }
      ++outcome.gave_up;
    });
  }
  clients.join();
  outcome.stats = server.stats();
  outcome.most_at_once = server.most_at_once();
}

int run(const Options& options) {
  Outcome outcome;
  weft::run([&] { run_clients(options, outcome); });
  if (outcome.served + outcome.gave_up != options.clients ||
      outcome.stats.rejected != outcome.refused || outcome.stats.submitted != outcome.served) {
    throw std::logic_error("a request was lost");
  }
  if (outcome.most_at_once > options.capacity) throw std::logic_error("too many at once");
  if (outcome.served == 0) throw std::logic_error("nobody was served");
  fmt::print("{} clients: {} served, {} gave up after {} attempts\n", options.clients,
             outcome.served.load(), outcome.gave_up.load(), options.attempts);
  fmt::print("{} answers of 503; {} requests at once at most\n", outcome.refused.load(),
             outcome.most_at_once);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A server that refuses what it cannot handle in time.", "shed_load");
  app.add_option("--clients", options.clients, "clients, which all come at once")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--capacity", options.capacity, "requests that are handled at once")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--queue", options.queue, "requests that may wait for that")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--request-ms", options.request_milliseconds, "how long a request takes")
      ->check(CLI::Range(0, 60'000))
      ->capture_default_str();
  app.add_option("--attempts", options.attempts, "attempts until a client gives up")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  return examples::parse_and_run(app, argc, argv, [&] { return run(options); });
}
