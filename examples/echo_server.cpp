// A TCP server that sends back what it is sent: a fiber for each connection, or with --pool N a
// pool of at most N fibers, which answers BUSY to whoever comes when all of them are taken.
//
//   echo_server --listen 127.0.0.1:7777
//   echo_server --listen 127.0.0.1:7777 --pool 100
#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

namespace {

using weft::Deadline;
using weft::net::TcpListener;
using weft::net::TcpStream;

struct Options {
  std::string listen = "127.0.0.1:7777";
  unsigned workers = 0;
  std::size_t pool = 0;  // 0: a fiber for each connection.
  std::uint64_t connections_limit = 0;
  double seconds = 0;
};

// The connections being served, so that the end of the server can end them.
class OpenStreams {
 public:
  // Keeps the stream in the set for a scope.
  class Entry {
   public:
    Entry(OpenStreams& streams, TcpStream& stream) : streams_(streams), stream_(stream) {
      const std::lock_guard lock(streams_.mutex_);
      if (streams_.closed_) stream_.close();
      streams_.streams_.insert(&stream_);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() {
      const std::lock_guard lock(streams_.mutex_);
      streams_.streams_.erase(&stream_);
    }

   private:
    OpenStreams& streams_;
    TcpStream& stream_;
  };

  // Also those that come later.
  void close_all() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (TcpStream* stream : streams_) stream->close();
  }

 private:
  weft::Mutex mutex_;  // Guards the rest.
  bool closed_ = false;
  std::set<TcpStream*> streams_;
};

class EchoServer {
 public:
  EchoServer(TcpListener listener, const Options& options)
      : listener_(std::move(listener)), connections_limit_(options.connections_limit) {
    if (options.pool > 0) {
      pool_.emplace(weft::PoolOptions{
          .capacity = options.pool, .on_full = weft::OnFull::reject, .name = "connections"});
    }
  }

  // Returns when the listener is closed or the limit is reached, and all connections have ended.
  void serve() {
    while (connections_limit_ == 0 || connections_ < connections_limit_) {
      auto [stream, error] = listener_.accept();
      if (error == weft::Errc::closed) break;
      if (error) {
        // Out of descriptors, most likely: connections that end will give some back.
        weft::this_fiber::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      ++connections_;
      open_.add();
      if (pool_) {
        hand_to_pool(std::make_shared<TcpStream>(std::move(stream)));
      } else {
        weft::go([this, accepted = std::move(stream)]() mutable { echo(accepted); });
      }
    }
    open_.wait();
  }

  // From any thread.
  void stop() {
    listener_.close();
    streams_.close_all();
  }

  void print_summary() const {
    fmt::print("connections {}\nrequests {}\nrefusals {}\n", connections_, requests_.load(),
               refusals_);
  }

 private:
  void echo(TcpStream& stream) {
    std::uint64_t requests = 0;
    {
      const OpenStreams::Entry entry(streams_, stream);
      std::array<std::byte, 4096> buffer;
      for (;;) {
        const auto [count, error] = stream.read_some(buffer);
        if (error || stream.write_all(std::span(buffer).first(count)).error) break;
        ++requests;
      }
      stream.close();
    }
    requests_ += requests;
    open_.done();
  }

  void hand_to_pool(const std::shared_ptr<TcpStream>& stream) {
    if (!pool_->try_submit([this, stream] { echo(*stream); })) return;
    ++refusals_;
    weft::go([this, stream] { refuse(*stream); });
  }

  // Says BUSY, and waits a while for the client to see it: closing a connection with unread bytes
  // resets it, and the answer would be lost.
  void refuse(TcpStream& stream) {
    {
      const OpenStreams::Entry entry(streams_, stream);
      const Deadline patience = Deadline::after(std::chrono::seconds(1));
      const std::string_view answer = "BUSY\n";
      (void)stream.write_all(std::as_bytes(std::span(answer)), patience);
      (void)stream.shutdown(weft::net::Shutdown::write);
      std::array<std::byte, 1024> ignored;
      while (!stream.read_some(ignored, patience).error) {
      }
      stream.close();
    }
    open_.done();
  }

  TcpListener listener_;
  const std::uint64_t connections_limit_;
  std::uint64_t connections_ = 0;  // Written by serve() only, as is the next one.
  std::uint64_t refusals_ = 0;
  std::atomic<std::uint64_t> requests_{0};
  OpenStreams streams_;
  weft::WaitGroup open_;
  std::optional<weft::FiberPool> pool_;
};

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

// Waits for SIGINT or SIGTERM, at most so long; 0 for ever.
void wait_for_the_end(double seconds) {
  const sigset_t signals = ending_signals();
  if (seconds <= 0) {
    int number = 0;
    sigwait(&signals, &number);
    return;
  }
  const auto whole = static_cast<std::time_t>(seconds);
  const timespec limit{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  sigtimedwait(&signals, nullptr, &limit);
}

int run_server(const Options& options) {
  const auto [address, malformed] = weft::net::Address::parse(options.listen);
  if (malformed) {
    fmt::print(stderr, "--listen: '{}' is not an address such as 127.0.0.1:7777 or [::1]:7777\n",
               options.listen);
    return 2;
  }
  weft::Runtime runtime({.workers = options.workers});
  auto [listener, error] = TcpListener::listen(address);
  if (error) {
    fmt::print(stderr, "cannot listen on {}: {}\n", options.listen, error.message());
    return 1;
  }
  fmt::print("listening on {}\n", listener.local_address().value.to_string());
  std::fflush(stdout);

  EchoServer server(std::move(listener), options);
  auto serving = weft::spawn([&] {
    server.serve();
    ::kill(::getpid(), SIGTERM);  // Ends the wait below, if the limit was reached first.
  });
  wait_for_the_end(options.seconds);
  server.stop();
  serving.join();
  server.print_summary();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Sends back what it is sent.");
  app.add_option("--listen", options.listen, "address and port; port 0 lets the system choose")
      ->capture_default_str();
  app.add_option("--workers", options.workers, "worker threads; 0: one per processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--pool", options.pool,
                 "serve at most so many connections at once and answer BUSY to others; 0: no limit")
      ->check(CLI::Range(0, 10'000'000))
      ->capture_default_str();
  app.add_option("--connections-limit", options.connections_limit,
                 "end after so many connections; 0: never")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "end after so long; 0: on SIGINT or SIGTERM")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  // Blocked before there are other threads, which inherit that: only the wait takes them.
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return run_server(options);
}
