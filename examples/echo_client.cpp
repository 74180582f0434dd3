// Puts load on an echo server and reports how fast the server answers.
//
//   echo_client --connect 127.0.0.1:7777 --connections 100 --seconds 5
//   echo_client --connect 127.0.0.1:7777 --requests 1000000 --pipeline 16 --json
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/go.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/runtime.hpp>
#include <weft/wait_group.hpp>

#include "command_line.hpp"

namespace {

using weft::Deadline;
using weft::net::Address;
using weft::net::TcpStream;

// More bytes in flight on one connection could fill all buffers on the way. Client and server would
// then wait for each other, because the client reads only after it has written.
constexpr std::size_t kMostInFlight = 65'536;

struct Options {
  std::string connect = "127.0.0.1:7777";
  unsigned connections = 50;
  std::uint64_t requests = 0;
  double seconds = 0;
  std::size_t size = 64;
  unsigned pipeline = 1;
  unsigned workers = 1;
  double timeout = 10;
  bool json = false;
};

// Counts durations in buckets whose widths grow with the durations. Each bucket is 1/32 of its
// power of two wide, so a percentile is off by 3 % at most.
class Histogram {
 public:
  void add(std::int64_t nanoseconds) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(nanoseconds, 0));
    ++counts_[std::min(bucket_of(value), kBuckets - 1)];
    ++count_;
    maximum_ = std::max(maximum_, value);
  }
  void add(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    maximum_ = std::max(maximum_, other.maximum_);
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double maximum_us() const noexcept { return static_cast<double>(maximum_) / 1e3; }
  // Returns, in microseconds, the least duration that a `share` of all durations do not exceed.
  [[nodiscard]] double percentile_us(double share) const noexcept {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      below += counts_[i];
      if (below > wanted) return std::min(static_cast<double>(upper_end(i)) / 1e3, maximum_us());
    }
    return maximum_us();
  }

 private:
  static constexpr unsigned kSubBits = 5;
  static constexpr std::size_t kBuckets = std::size_t{36} << kSubBits;  // Up to 2^40 ns, 18 min.

  // Each value below 32 has its own bucket. For larger values, the highest bit and the next five
  // bits determine the bucket.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t value) noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width(value));
    if (bits <= kSubBits) return value;
    const unsigned shift = bits - kSubBits - 1;
    return (std::size_t{shift} << kSubBits) + (value >> shift);
  }
  [[nodiscard]] static std::uint64_t upper_end(std::size_t bucket) noexcept {
    if (bucket < (std::size_t{1} << (kSubBits + 1))) return bucket;
    const std::size_t shift = (bucket >> kSubBits) - 1;
    const std::uint64_t lead = (bucket & ((1U << kSubBits) - 1)) | (1U << kSubBits);
    return ((lead + 1) << shift) - 1;
  }

  std::array<std::uint32_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t maximum_ = 0;
};

// Counts the remaining work of all connections together.
class Budget {
 public:
  explicit Budget(const Options& options)
      : counted_(options.requests > 0), left_(static_cast<std::int64_t>(options.requests)) {}
  // Call it when the load begins.
  void start(Deadline end) noexcept { end_ = end; }
  // Returns how many of `wanted` requests may still be made, or 0 at the end of the load.
  [[nodiscard]] unsigned take(unsigned wanted, std::int64_t now) noexcept {
    if (now >= end_.nanoseconds()) return 0;
    if (!counted_) return wanted;
    const std::int64_t before = left_.fetch_sub(wanted);
    return static_cast<unsigned>(std::clamp<std::int64_t>(before, 0, wanted));
  }

 private:
  const bool counted_;
  std::atomic<std::int64_t> left_;
  Deadline end_ = Deadline::never();
};

enum class Outcome { done, refused, failed };

// One connection and its results.
struct Connection {
  TcpStream stream;
  Histogram latencies;
  Outcome outcome = Outcome::done;
  std::error_code error;

  void fail(std::error_code why) {
    outcome = Outcome::failed;
    error = why;
  }
};

// Compares each reply, which may come in several pieces, with the request.
class Replies {
 public:
  Replies(Connection& connection, std::span<const std::byte> message)
      : connection_(connection), message_(message), buffer_(message.size()) {}

  // Receives one reply. Returns false if the connection has ended.
  bool receive() {
    std::size_t done = 0;
    while (done < buffer_.size()) {
      const auto [count, error] = connection_.stream.read_some(std::span(buffer_).subspan(done));
      done += count;
      if (is_refusal(done)) {
        connection_.outcome = Outcome::refused;
        return false;
      }
      if (error) {
        connection_.fail(error);
        return false;
      }
    }
    if (std::equal(buffer_.begin(), buffer_.end(), message_.begin())) return true;
    connection_.fail(std::make_error_code(std::errc::bad_message));
    return false;
  }

 private:
  [[nodiscard]] bool is_refusal(std::size_t size) const noexcept {
    constexpr std::string_view kBusy = "BUSY\n";
    return size == kBusy.size() && std::memcmp(buffer_.data(), kBusy.data(), size) == 0;
  }

  Connection& connection_;
  std::span<const std::byte> message_;
  std::vector<std::byte> buffer_;
};

// Makes a round trip before the load begins, so that the server has accepted or refused the
// connection by then.
void begin(Connection& connection, const Options& options, Deadline deadline) {
  const std::vector<std::byte> message(options.size, std::byte{'x'});
  connection.stream.set_read_deadline(deadline);
  const auto written = connection.stream.write_all(message, deadline);
  if (Replies(connection, message).receive() && written.error) connection.fail(written.error);
  connection.stream.set_read_deadline(Deadline::never());
}

// Sends `pipeline` requests at once, waits for all replies, and so on.
void put_load(Connection& connection, const Options& options, Budget& budget) {
  const std::vector<std::byte> messages(options.size * options.pipeline, std::byte{'x'});
  Replies replies(connection, std::span(messages).first(options.size));
  for (;;) {
    const std::int64_t sent = Deadline::now_nanoseconds();
    const unsigned count = budget.take(options.pipeline, sent);
    if (count == 0) return;
    const auto written =
        connection.stream.write_all(std::span(messages).first(std::size_t{count} * options.size));
    // A server that refuses may reset the connection before all is sent; its answer comes first.
    for (unsigned i = 0; i < count; ++i) {
      if (!replies.receive()) return;
      connection.latencies.add(Deadline::now_nanoseconds() - sent);
    }
    if (written.error) return connection.fail(written.error);
  }
}

struct Summary {
  Histogram latencies;
  std::uint64_t refusals = 0;
  std::uint64_t errors = 0;
  std::string first_error;
  double seconds = 0;
};

using Connections = std::vector<std::unique_ptr<Connection>>;

// Runs `work` once for each connection, all at the same time, and waits for all.
template <class Work>
void for_each_at_once(Connections& connections, Work work) {
  weft::WaitGroup done;
  for (auto& connection : connections) {
    done.add();
    weft::go([&done, &work, &connection = *connection] {
      work(connection);
      done.done();
    });
  }
  done.wait();
}

Summary sum_up(const Connections& connections) {
  Summary summary;
  for (const auto& connection : connections) {
    summary.latencies.add(connection->latencies);
    if (connection->outcome == Outcome::refused) ++summary.refusals;
    if (connection->outcome != Outcome::failed) continue;
    ++summary.errors;
    if (summary.first_error.empty()) summary.first_error = connection->error.message();
  }
  return summary;
}

Summary run_load(const Address& address, const Options& options) {
  const auto timeout = std::chrono::duration<double>(options.timeout);
  Connections connections(options.connections);
  for (auto& connection : connections) connection = std::make_unique<Connection>();
  for_each_at_once(connections, [&](Connection& connection) {
    const Deadline deadline = Deadline::after(timeout);
    auto [stream, error] = TcpStream::connect(address, deadline);
    connection.stream = std::move(stream);
    if (error) return connection.fail(error);
    begin(connection, options, deadline);
  });

  Budget budget(options);
  const auto seconds = std::chrono::duration<double>(options.seconds);
  if (options.seconds > 0) budget.start(Deadline::after(seconds));
  const std::int64_t start = Deadline::now_nanoseconds();
  auto load = weft::spawn([&] {
    for_each_at_once(connections, [&](Connection& connection) {
      if (connection.outcome == Outcome::done) put_load(connection, options, budget);
    });
  });
  // One timer bounds the whole load, because a timer for each read would cost the client time.
  const bool ended = options.seconds > 0 ? load.wait_for(seconds + timeout) : (load.join(), true);
  if (!ended) {
    for (auto& connection : connections) connection->stream.close();
    load.join();
  }
  const double elapsed = static_cast<double>(Deadline::now_nanoseconds() - start) / 1e9;
  Summary summary = sum_up(connections);
  summary.seconds = elapsed;
  return summary;
}

void print_text(const Summary& summary) {
  const Histogram& latencies = summary.latencies;
  fmt::print("requests    {} in {:.3f} s: {:.0f} per second\n", latencies.count(), summary.seconds,
             static_cast<double>(latencies.count()) / summary.seconds);
  fmt::print("latency us  p50 {:.1f}  p90 {:.1f}  p99 {:.1f}  p99.9 {:.1f}  max {:.1f}\n",
             latencies.percentile_us(0.5), latencies.percentile_us(0.9),
             latencies.percentile_us(0.99), latencies.percentile_us(0.999), latencies.maximum_us());
  fmt::print("refusals    {}\nerrors      {}{}{}\n", summary.refusals, summary.errors,
             summary.errors > 0 ? ", the first: " : "", summary.first_error);
}

void print_json(const Summary& summary, const Options& options) {
  const Histogram& latencies = summary.latencies;
  const nlohmann::json line = {
      {"connections", options.connections},
      {"size", options.size},
      {"pipeline", options.pipeline},
      {"requests", latencies.count()},
      {"seconds", summary.seconds},
      {"requests_per_second", static_cast<double>(latencies.count()) / summary.seconds},
      {"p50_us", latencies.percentile_us(0.5)},
      {"p90_us", latencies.percentile_us(0.9)},
      {"p99_us", latencies.percentile_us(0.99)},
      {"p99_9_us", latencies.percentile_us(0.999)},
      {"max_us", latencies.maximum_us()},
      {"refusals", summary.refusals},
      {"errors", summary.errors},
      {"first_error", summary.first_error},
  };
  fmt::print("{}\n", line.dump());
}

// A connection needs a descriptor; the usual soft limit is 1024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

int run_client(const Options& options) {
  if (options.size * options.pipeline > kMostInFlight) {
    fmt::print(stderr, "--size {} times --pipeline {} is more than {} bytes in flight\n",
               options.size, options.pipeline, kMostInFlight);
    return 2;
  }
  const auto [address, malformed] = Address::parse(options.connect);
  if (malformed) {
    fmt::print(stderr, "--connect: '{}' is not an address such as 127.0.0.1:7777 or [::1]:7777\n",
               options.connect);
    return 2;
  }
  raise_descriptor_limit();
  const Summary summary = weft::run(weft::RuntimeOptions{.workers = options.workers},
                                    [&, &to = address] { return run_load(to, options); });
  if (options.json) {
    print_json(summary, options);
  } else {
    print_text(summary);
  }
  return summary.errors > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("echo_client",
                             "Puts load on an echo server and tells how fast it answers.");
  line.add("--connect", options.connect, "address and port of the server");
  line.add("--connections", options.connections, 1, 1'000'000, "connections at the same time");
  line.add("--requests", options.requests, 1, std::size_t{1} << 60, "end after so many requests");
  line.add("--seconds", options.seconds, 0.001, 1e6, "end after so long (default 5)");
  line.exclude("--requests", "--seconds");
  line.add("--size", options.size, 5, kMostInFlight,
           "bytes of a request; 5 at least, so that BUSY can be told from a reply");
  line.add("--pipeline", options.pipeline, 1, 10'000,
           "requests sent before the first reply is awaited");
  line.add("--workers", options.workers, 0, 1024, "worker threads; 0: one per processor");
  line.add("--timeout", options.timeout, 0.001, 1e6,
           "seconds for connecting with a first reply, and for the last replies after --seconds");
  line.add_flag("--json", options.json, "print one line of JSON instead of text");
  return line.run(argc, argv, [&] {
    if (options.requests == 0 && options.seconds == 0) options.seconds = 5;
    return run_client(options);
  });
}
