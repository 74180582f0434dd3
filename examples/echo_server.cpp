// A TCP server that sends back what it receives. Each connection has a fiber. With --pool N, a pool
// runs at most N fibers, and the server answers BUSY to a client that comes when all N are in use.
//
//   echo_server --listen 127.0.0.1:7777
//   echo_server --listen 127.0.0.1:7777 --pool 100
#include <fmt/core.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <weft/go.hpp>
#include <weft/net/serve.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>
#include <weft/task_group.hpp>

#include "command_line.hpp"

namespace {

using weft::Deadline;
using weft::net::ByteStream;

struct Options {
  std::string listen = "127.0.0.1:7777";
  unsigned workers = 0;
  std::size_t pool = 0;  // 0 means a fiber for each connection.
  double seconds = 0;
};

std::uint64_t echo(ByteStream& stream) {
  std::uint64_t requests = 0;
  std::array<std::byte, 4096> buffer;
  for (;;) {
    const auto [count, error] = stream.read_some(buffer);
    if (error || stream.write_all(std::span(buffer).first(count)).error) return requests;
    ++requests;
  }
}

// Sends BUSY, and waits a while for the client to read it: closing a connection with unread bytes
// resets it, and the answer would be lost.
void refuse(ByteStream& stream) {
  const Deadline patience = Deadline::after(std::chrono::seconds(1));
  const std::string_view answer = "BUSY\n";
  (void)stream.write_all(std::as_bytes(std::span(answer)), patience);
  (void)stream.shutdown(weft::net::Shutdown::write);
  std::array<std::byte, 1024> ignored;
  while (!stream.read_some(ignored, patience).error) {
  }
}

int serve(const Options& options, const weft::net::Address& address) {
  auto [listener, no_listener] = weft::net::TcpListener::listen(address);
  if (no_listener) {
    fmt::print(stderr, "cannot listen on {}: {}\n", options.listen, no_listener.message());
    return examples::kFailed;
  }
  fmt::print("listening on {}\n", listener.local_address().value.to_string());
  std::fflush(stdout);

  std::optional<weft::FiberPool> pool;
  weft::net::ServerOptions serving{.grace = std::chrono::seconds(1)};
  if (options.pool > 0) {
    pool.emplace(weft::PoolOptions{
        .capacity = options.pool, .on_full = weft::OnFull::reject, .name = "connections"});
    serving.run = weft::net::in_pool(*pool);
  }
  serving.on_refused = [](ByteStream stream) {
    weft::go([refused = std::move(stream)]() mutable { refuse(refused); });
  };
  const weft::StopOnSignal stop;
  serving.stop = stop.get_token();
  std::atomic<std::uint64_t> requests{0};
  weft::net::Server server([&](ByteStream& stream) { requests += echo(stream); },
                           std::move(serving));
  weft::TaskGroup limit;
  if (options.seconds > 0) {
    limit.spawn_after(std::chrono::duration<double>(options.seconds), [&] { server.stop(); });
  }
  const std::error_code failed = server.serve(listener);
  limit.cancel();
  if (failed) fmt::print(stderr, "cannot accept: {}\n", failed.message());
  const auto stats = server.stats();
  fmt::print("connections {}\nrequests {}\nrefusals {}\n", stats.accepted, requests.load(),
             stats.refused);
  return failed ? examples::kFailed : 0;
}

int run(const Options& options) {
  const auto [address, malformed] = weft::net::Address::parse(options.listen);
  if (malformed) {
    fmt::print(stderr, "--listen: '{}' is not an address such as 127.0.0.1:7777 or [::1]:7777\n",
               options.listen);
    return examples::kBadArguments;
  }
  return weft::run({.workers = options.workers},
                   [&, &where = address] { return serve(options, where); });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("echo_server", "Sends back what it is sent.");
  line.add("--listen", options.listen, "address and port; port 0 lets the system choose");
  line.add("--workers", options.workers, 0, 1024, "worker threads; 0: one per processor");
  line.add("--pool", options.pool, 0, 10'000'000,
           "serve at most so many connections at once and answer BUSY to others; 0: no limit");
  line.add("--seconds", options.seconds, 0.0, 1e9, "end after so long; 0: on SIGINT or SIGTERM");
  return line.run(argc, argv, [&] { return run(options); });
}
