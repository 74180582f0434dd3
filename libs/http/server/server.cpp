#include <weft/http/server.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include <weft/net/serve.hpp>
#include <weft/this_fiber.hpp>

#include "libs/http/coding/gzip.hpp"
#include "libs/http/server/server_connection.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/wire/as_tcp.hpp"
#include "net/acceptor.hpp"

namespace weft::http {

using detail::relaxed;

namespace {

// The time that a client has for its first request if it connected before the stop.
constexpr std::chrono::milliseconds kPatience(500);
// The maximum number of requests that longest_requests() returns. A search for more requests would
// hold the connections' locks for too long.
constexpr std::size_t kMostShown = 256;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("weft::http::ServerOptions: " + what);
}

void require_at_least(std::size_t value, std::size_t least, const char* what) {
  require(value >= least, std::string(what)
                              .append(" = ")
                              .append(std::to_string(value))
                              .append("; must be at least " + std::to_string(least)));
}

ServerOptions checked(ServerOptions options) {
  const Limits& limits = options.limits;
  require_at_least(limits.head_bytes, 256, "limits.head_bytes");
  require_at_least(limits.target_bytes, 1, "limits.target_bytes");
  require(limits.headers >= 1 && limits.headers <= Limits::kMaxHeaders,
          "limits.headers = " + std::to_string(limits.headers) + "; must be from 1 to " +
              std::to_string(Limits::kMaxHeaders));
  const std::initializer_list<std::pair<const char*, std::chrono::nanoseconds>> times = {
      {"head", limits.head},
      {"body", limits.body},
      {"write", limits.write},
      {"idle", limits.idle},
      {"request", limits.request}};
  for (const auto& [name, time] : times) {
    require(time > std::chrono::nanoseconds(0), std::string("limits.") + name + " = " +
                                                    std::to_string(time.count()) +
                                                    " ns; must be above 0");
  }
  require_at_least(options.max_running, 1, "max_running");
  require_at_least(options.max_connections, 1, "max_connections");
  require(options.pool == nullptr || options.max_running == kUnlimited,
          "max_running cannot be set with a pool, whose capacity it is");
  if (options.compression) {
    require(Gzip::is_built_in(),
            "compression needs zlib, and weft-http was built without: -Dzlib=enabled");
    require(options.compression->level >= 1 && options.compression->level <= 9,
            "compression->level = " + std::to_string(options.compression->level) +
                "; must be from 1 to 9");
  }
  return options;
}

std::unique_ptr<FiberPool> make_pool(const ServerOptions& options) {
  if (options.max_running == kUnlimited) return nullptr;
  return std::make_unique<FiberPool>(PoolOptions{.capacity = options.max_running,
                                                 .queue_capacity = options.max_queued,
                                                 .on_full = OnFull::reject,
                                                 .name = "http handlers"});
}

std::uint64_t permits(std::size_t most) noexcept {
  return most == kUnlimited ? std::uint64_t{1} << 62 : most;
}

net::TcpStream stream_of(net::Connection::AnyStream stream) {
  return std::visit([](auto& any) { return as_tcp(std::move(any)); }, stream);
}

}  // namespace

ServerCore::ServerCore(Handler handler, ServerOptions options)
    : handler_(std::move(handler)),
      options_(checked(std::move(options))),
      own_pool_(make_pool(options_)),
      pool_(options_.pool != nullptr ? options_.pool : own_pool_.get()),
      connections_(
          [](net::ConnectionRecord& connection) noexcept {
            return static_cast<ServerConnection&>(connection)
                .transport()
                .stream()
                .socket()
                .handle();
          },
          options_.limits.idle),
      room_(permits(options_.max_connections)),
      meter_(
          options_.name, [this] { return stats(); },
          [this](std::size_t most) { return longest_requests(most, LongestBy::age); }),
      asked_to_stop_(options_.stop, [this] { stop(); }) {
  require(static_cast<bool>(handler_), "the handler is empty");
}

// Implements one call of serve(): accepts connections, and passes them to the server.
class ServerCore::Loop final : private net::Acceptor {
 public:
  explicit Loop(ServerCore& core)
      : Acceptor(net::AtLimit::wait),
        core_(core),
        asked_to_stop_(core.stop_.get_token(), Stop{*this}) {
    core_.loops_.add();
  }
  ~Loop() { core_.loops_.done(); }

  std::error_code run(std::span<const net::AnyListener> listeners) {
    {
      // This destructor also runs if start() cannot start a fiber.
      struct End {
        Loop& loop;
        std::span<const net::AnyListener> listeners;
        ~End() {
          loop.stop();
          (void)loop.wait_until({});
          for (const net::AnyListener& each : listeners)
            each.close();  // Some listeners may have no fiber that closes them.
        }
      };
      const End end{*this, listeners};
      start(listeners);
      if (!listeners.empty()) (void)this_fiber::sleep_until(Deadline::never(), stop_token());
    }
    return error();
  }

 private:
  struct Stop {
    Loop& loop;
    void operator()() const noexcept { loop.stop(); }
  };

  // Always returns true, because take_in() waits for room after a connection is accepted.
  [[nodiscard]] bool take_place(const Until&) noexcept override { return true; }
  void give_place() noexcept override {}
  void begin(net::Connection::AnyStream&& stream) noexcept override {
    core_.take_in(stream_of(std::move(stream)));
  }
  void turn_away(net::ByteStream&& stream) noexcept override { core_.turn_away(stream); }
  void count_pause() noexcept override { core_.accept_pauses_.fetch_add(1, relaxed); }

  ServerCore& core_;
  // Must be the last field, because the callback may run in the constructor.
  std::stop_callback<Stop> asked_to_stop_;
};

std::error_code ServerCore::serve(std::span<const net::AnyListener> listeners) {
  // This destructor runs after the loop, even if the loop throws.
  struct End {
    ServerCore& core;
    ~End() {
      // Relaxed suffices, because stop() stores the flag before it wakes this fiber.
      if (core.ends_by_itself_.load(relaxed)) {
        (void)core.shutdown(Deadline::after(core.options_.grace));
      }
    }
  };
  const End end{*this};
  Loop loop(*this);
  connections_.start_keeper();
  return loop.run(listeners);
}

void ServerCore::stop() noexcept {
  ends_by_itself_.store(true, relaxed);
  // Uses a copy of stop_, because another thread may destroy the server during the call.
  (void)std::stop_source(stop_).request_stop();
}

void ServerCore::take_in(net::TcpStream stream) noexcept {
  const std::stop_token stop = stop_.get_token();
  // A stop ends the wait for room, but the accepted connection is still added, so that the shutdown
  // can end it. The server may thus have more than max_connections connections until then.
  (void)room_.try_acquire_until(stop);
  auto* const connection = new (std::nothrow) ServerConnection(std::move(stream), *this);
  if (connection == nullptr) return room_.release();
  connections_.add(*connection);
  // A fiber starts when the first bytes arrive. A stopping server also ends connections that have
  // no fiber.
  if (connection->wait_for_bytes()) return;
  // The spawn failed: memory has run out, or the runtime has reached a limit set by its options.
  turn_away(connection->transport().stream());
  end_connection(*connection);
}

// Counts a connection that the server has no resources to serve, and answers with 503. A secure
// server sends no response, because its clients expect a handshake first. The caller closes the
// connection.
void ServerCore::turn_away(net::ByteStream& stream) noexcept {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
      "Connection: close\r\n\r\n";
  turned_away_.fetch_add(1, relaxed);
  if (options_.secure) return;
  (void)stream.write_some(std::as_bytes(std::span(kAnswer)), Deadline::past());
}

bool ServerCore::shutdown(Deadline grace) {
  net::ConnectionRecord* const own = connections_.find_caller(this_fiber::id());
  if (own != nullptr) connections_.excuse(*own);
  // A shutdown() in a handler does not wait for the handler's own connection, nor for connections
  // whose handlers have also called shutdown().
  const auto wait_until = [&](const Until& until) {
    return own != nullptr ? connections_.wait_for_others(until) : connections_.wait_for_all(until);
  };
  stop_.request_stop();
  connections_.end_keeper();
  loops_.wait();  // No more connections are added after this wait.
  connections_.poke_all();
  bool in_time = wait_until(std::min(grace, Deadline::after(kPatience)));
  if (!in_time) {
    (void)new_end_.request_stop();
    connections_.poke_all();
    in_time = wait_until(grace);
  }
  if (!in_time) {
    (void)scope_.cancel();
    (void)(own != nullptr ? connections_.close_others() : connections_.close_all());
    // A handler must not wait here, because another connection may be waiting for the handler's
    // slot. That connection cannot end before this call returns.
    if (own == nullptr) (void)wait_until({});
  }
  // A shutdown() in a handler does not end own_pool_, because the handler may run in this pool. A
  // later call, such as the call in the destructor, ends the pool.
  if (own_pool_ != nullptr && own == nullptr) {
    own_pool_->close(Close::drain);
    own_pool_->join();
  }
  return in_time;
}

ServerStats ServerCore::stats() const noexcept {
  const net::Connections::Counts counts = connections_.counts();
  return {.accepted = counts.added,
          .connections = counts.present,
          .requests = meter_.requests(),
          .refused = meter_.refused(),
          .malformed = meter_.malformed(),
          .accept_pauses = accept_pauses_.load(relaxed),
          .turned_away = turned_away_.load(relaxed)};
}

namespace {

RequestState state_of(const ProgressView& progress) noexcept {
  if (progress.waits_since < 0) return RequestState::writing;
  if (progress.method.view().empty()) return RequestState::reading_head;
  return progress.waits_since > 0 ? RequestState::reading_body : RequestState::handling;
}

std::chrono::nanoseconds waiting_time(const ProgressView& progress, std::int64_t now) noexcept {
  if (progress.waits_since == 0) return {};
  return std::chrono::nanoseconds(std::max<std::int64_t>(0, now - std::abs(progress.waits_since)));
}

}  // namespace

std::vector<RequestInProgress> ServerCore::longest_requests(std::size_t most, LongestBy by) const {
  std::vector<Busy> found(std::min(most, kMostShown));
  found.resize(find_longest(connections_, found, by));
  const std::int64_t now = Deadline::now_nanoseconds();
  std::vector<RequestInProgress> requests;
  for (const Busy& busy : found) {
    const ProgressView& progress = busy.progress;
    if (progress.began == 0) continue;  // The request was answered during the search.
    if (by == LongestBy::wait && progress.waits_since == 0) continue;
    requests.push_back(
        {.peer = busy.peer,
         .fiber = busy.fiber,
         .method = std::string(progress.method.view()),
         .target = std::string(progress.target.view()),
         .age = std::chrono::nanoseconds(std::max<std::int64_t>(0, now - progress.began)),
         .received = progress.received,
         .sent = progress.sent,
         .route = title_of_route(progress.route),
         .state = state_of(progress),
         .waiting = waiting_time(progress, now)});
  }
  return requests;
}

Server::Server(Handler handler, ServerOptions options)
    : core_(std::make_unique<ServerCore>(std::move(handler), std::move(options))) {}

Server::~Server() { (void)shutdown(Deadline::past()); }

net::Result<void> Server::serve(std::span<const net::AnyListener> listeners) {
  return core_->serve(listeners);
}
net::Result<void> Server::serve(std::span<net::TcpListener> listeners) {
  return core_->serve(std::vector<net::AnyListener>(listeners.begin(), listeners.end()));
}

void Server::stop() noexcept { core_->stop(); }

bool Server::shutdown(Deadline grace) { return core_->shutdown(grace); }

ServerStats Server::stats() const noexcept { return core_->stats(); }

std::vector<RequestInProgress> Server::longest_requests(std::size_t most) const {
  return core_->longest_requests(most, LongestBy::age);
}

std::vector<RequestInProgress> Server::slow_clients(std::size_t most) const {
  return core_->longest_requests(most, LongestBy::wait);
}

}  // namespace weft::http
