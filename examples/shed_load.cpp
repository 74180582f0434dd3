// A server that sheds load: a pool handles a limited number of requests at once, a few more may
// wait, and the server answers all further requests with 503 at once. So the requests that it
// serves are served in time, however many come. Refusals are bounded, too: the server closes
// connections beyond that bound. The clients are in the same process; they come faster than the
// server can handle them, send one request each, and retry a few times if refused.
//
//   shed_load --clients 400 --capacity 8 --queue 4 --request-ms 20 --overload 3
//   shed_load --queue 1000      no client is refused, and all wait
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/net/serve.hpp>
#include <weft/pacer.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

using weft::Deadline;
using weft::net::Address;
using weft::net::ByteStream;
using weft::net::TcpListener;
using weft::net::TcpStream;

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Options {
  unsigned clients = 400;
  std::size_t capacity = 8;
  std::size_t queue = 4;
  unsigned request_milliseconds = 20;
  double overload = 3;
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
  ~Server() { listener_.close(); }  // Next the handle joins, then the pools.

  [[nodiscard]] Address address() const { return listener_.local_address().value; }
  [[nodiscard]] std::size_t most_at_once() const { return most_at_once_; }
  [[nodiscard]] weft::PoolStats stats() const { return pool_.stats(); }
  [[nodiscard]] weft::PoolStats refusals() const { return refusals_.stats(); }

 private:
  void serve() {
    // Refusing takes little work, but a client may be slow. If this pool is also full, the
    // connection is closed with its last copy.
    const auto refuse = [this](ByteStream stream) {
      auto connection = std::make_shared<ByteStream>(std::move(stream));
      (void)refusals_.submit([connection] { answer(*connection, kBusy); });
    };
    check(weft::net::serve(listener_, {.on_refused = refuse, .run = weft::net::in_pool(pool_)},
                           [this](ByteStream& connection) { handle(connection); }));
  }

  void handle(ByteStream& connection) {
    const std::size_t at_once = ++at_once_;
    std::size_t most = most_at_once_;
    while (most < at_once && !most_at_once_.compare_exchange_weak(most, at_once)) {
    }
    weft::this_fiber::sleep_for(std::chrono::milliseconds(options_.request_milliseconds));
    --at_once_;
    answer(connection, kOk);
  }

  // Reads the request first, because closing a connection with unread bytes resets it.
  static void answer(ByteStream& connection, std::string_view text) {
    const Deadline patience = Deadline::after(std::chrono::seconds(10));
    std::array<std::byte, kRequest.size()> request;
    if (connection.read_exactly(request, patience).error) return;
    (void)connection.write_all(bytes_of(text), patience);
  }

  const Options& options_;
  std::atomic<std::size_t> at_once_{0};
  std::atomic<std::size_t> most_at_once_{0};
  weft::FiberPool pool_;
  weft::FiberPool refusals_{{.capacity = 100, .on_full = weft::OnFull::reject, .name = "refusals"}};
  TcpListener listener_;
  weft::JoinHandle<void> serving_;  // Ends first: its fiber uses the other members.
};

// Returns the status of one request, or 0 if the server closed the connection.
int ask(const Address& server) {
  auto [stream, error] = TcpStream::connect(server);
  check(error);
  if (stream.write_all(bytes_of(kRequest)).error) return 0;
  std::array<std::byte, 12> status;  // HTTP/1.0 200
  if (stream.read_exactly(status).error) return 0;
  return std::stoi(std::string(reinterpret_cast<const char*>(status.data()) + 9, 3));
}

struct Outcome {
  weft::Mutex mutex;  // Guards the next four members.
  std::vector<Milliseconds> served_after;
  std::vector<Milliseconds> refused_after;
  unsigned hung_up = 0;
  unsigned gave_up = 0;
  weft::PoolStats stats;
  weft::PoolStats refusals;
  std::size_t most_at_once = 0;
};

// Returns true if the client was served.
bool ask_once(const Address& server, Outcome& outcome) {
  const auto start = Clock::now();
  const int status = ask(server);
  const Milliseconds took = Clock::now() - start;
  const std::lock_guard guard(outcome.mutex);
  if (status == 200) {
    outcome.served_after.push_back(took);
  } else if (status == 503) {
    outcome.refused_after.push_back(took);
  } else if (status == 0) {
    ++outcome.hung_up;
  } else {
    throw std::logic_error("an answer that nobody sends");
  }
  return status == 200;
}

void run_client(const Options& options, const Address& server, Outcome& outcome) {
  for (unsigned attempt = 1; attempt <= options.attempts; ++attempt) {
    if (ask_once(server, outcome)) return;
    weft::this_fiber::sleep_for(attempt * std::chrono::milliseconds(options.request_milliseconds));
  }
  const std::lock_guard guard(outcome.mutex);
  ++outcome.gave_up;
}

void run_clients(const Options& options, Outcome& outcome) {
  Server server(options);
  const Milliseconds request{options.request_milliseconds};
  const auto spacing = request / (static_cast<double>(options.capacity) * options.overload);
  weft::Pacer pacer(std::chrono::duration_cast<std::chrono::nanoseconds>(spacing));
  weft::TaskGroup clients;
  for (unsigned i = 0; i < options.clients; ++i) {
    pacer.next();
    clients.spawn([&] { run_client(options, server.address(), outcome); });
  }
  clients.join();
  outcome.stats = server.stats();
  outcome.refusals = server.refusals();
  outcome.most_at_once = server.most_at_once();
}

void check(const Options& options, const Outcome& outcome) {
  const std::size_t served = outcome.served_after.size();
  const std::size_t refused = outcome.refused_after.size();
  if (served + outcome.gave_up != options.clients || outcome.stats.submitted != served ||
      outcome.stats.rejected != refused + outcome.hung_up ||
      outcome.refusals.rejected != outcome.hung_up) {
    throw std::logic_error("a request was lost");
  }
  if (outcome.most_at_once > options.capacity) throw std::logic_error("too many at once");
  if (served == 0) throw std::logic_error("nobody was served");
}

void print(const char* what, std::vector<Milliseconds> times) {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  fmt::print("{:<8}{:>8}{:>12.3f} ms{:>12.3f} ms\n", what, times.size(),
             times[times.size() / 2].count(), times.back().count());
}

int run(const Options& options) {
  Outcome outcome;
  weft::run([&] { run_clients(options, outcome); });
  check(options, outcome);
  fmt::print("{:<8}{:>8}{:>15}{:>15}\n", "", "answers", "median", "longest");
  print("served", outcome.served_after);
  print("refused", outcome.refused_after);
  if (outcome.hung_up > 0) fmt::print("{:<8}{:>8}\n", "hung up", outcome.hung_up);
  fmt::print("{} of {} clients gave up after {} attempts; {} requests at once at most\n",
             outcome.gave_up, options.clients, options.attempts, outcome.most_at_once);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("shed_load", "A server that refuses what it cannot handle in time.");
  line.add("--clients", options.clients, 1, 10'000, "clients, which come one after the other");
  line.add("--capacity", options.capacity, 1, 1'000'000, "requests that are handled at once");
  line.add("--queue", options.queue, 0, 1'000'000, "requests that may wait for that");
  line.add("--request-ms", options.request_milliseconds, 1, 60'000, "how long a request takes");
  line.add("--overload", options.overload, 0.1, 1000.0,
           "how much faster they come than can be handled");
  line.add("--attempts", options.attempts, 1, 1'000, "attempts until a client gives up");
  return line.run(argc, argv, [&] { return run(options); });
}
