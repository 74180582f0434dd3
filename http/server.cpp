#include <weft/http/server.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "http/connection.hpp"
#include "http/server_core.hpp"

namespace weft::http {

using detail::acq_rel;
using detail::relaxed;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("weft::http::Server: ") + what);
}

ServerOptions checked(ServerOptions options) {
  const Limits& limits = options.limits;
  require(limits.head_bytes >= 256, "limits.head_bytes must be 256 at least");
  require(limits.target_bytes >= 1, "limits.target_bytes must be 1 at least");
  require(limits.headers >= 1 && limits.headers <= Limits::kMaxHeaders,
          "limits.headers must be from 1 to 128");
  for (const auto time : {limits.head, limits.body, limits.write, limits.idle, limits.request}) {
    require(time > std::chrono::nanoseconds(0), "a time of limits must be above 0");
  }
  require(options.max_running >= 1, "max_running must be 1 at least");
  require(options.max_connections >= 1, "max_connections must be 1 at least");
  require(options.pool == nullptr || options.max_running == kUnlimited,
          "max_running is the pool's capacity if there is a pool");
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

// What a busy moment brings, and a quieter one ends.
bool passes_by_itself(std::error_code error) noexcept {
  return error == std::errc::too_many_files_open ||
         error == std::errc::too_many_files_open_in_system || error == std::errc::no_buffer_space ||
         error == std::errc::not_enough_memory;
}

}  // namespace

ServerCore::ServerCore(Handler handler, ServerOptions options)
    : handler_(std::move(handler)),
      options_(checked(std::move(options))),
      own_pool_(make_pool(options_)),
      pool_(options_.pool != nullptr ? options_.pool : own_pool_.get()),
      room_(permits(options_.max_connections)) {
  require(static_cast<bool>(handler_), "the handler is empty");
}

std::error_code ServerCore::serve(net::TcpListener& listener) {
  helpers_.add();
  struct Leave {
    WaitGroup& helpers;
    ~Leave() { helpers.done(); }
  } const leave{helpers_};
  start_keeper();
  const std::stop_token stop = stop_.get_token();
  unsigned failures = 0;
  while (!stop.stop_requested()) {
    if (!room_.try_acquire_until(stop)) break;
    auto [stream, error] = listener.accept(stop);
    if (!error) {
      failures = 0;
      take_in(std::move(stream));
      continue;
    }
    room_.release();
    if (error == weft::Errc::cancelled || error == weft::Errc::closed) break;
    if (!passes_by_itself(error)) return error;
    if (!pause_after(error, failures++)) break;
  }
  return {};
}

// Longer each time. False if the server stops meanwhile.
bool ServerCore::pause_after(std::error_code /*error*/, unsigned failures) {
  pauses_.fetch_add(1, relaxed);  // Relaxed here and in take_in(): only numbers.
  const auto pause = std::chrono::milliseconds(5) * (1U << std::min(failures, 7U));
  return !stopped_.wait_until(Deadline::after(pause));
}

void ServerCore::take_in(net::TcpStream stream) {
  auto connection = std::make_unique<Connection>(std::move(stream), *this);
  accepted_.fetch_add(1, relaxed);
  connections_.add();
  registry_.add(*connection, options_.limits.idle);
  Connection& served = *connection.release();
  // With the first edge a fiber comes. A server that stops looks for those that have none.
  if (!served.wait_for_bytes()) end_connection(served);
}

void ServerCore::end_connection(Connection& connection) noexcept {
  registry_.remove(connection);
  delete &connection;
  room_.release();
  connections_.done();
}

void ServerCore::start_keeper() {
  // Relaxed: one of several calls has to win, and that is all.
  if (options_.limits.idle == kNever || keeper_started_.exchange(true, relaxed)) return;
  helpers_.add();
  try {
    go([this] { keep(); });
  } catch (...) {
    helpers_.done();
    throw;
  }
}

// A fiber that looks for connections that have been idle for too long.
void ServerCore::keep() noexcept {
  std::int64_t next = 0;
  while (!stopped_.wait_until(Deadline::at_nanoseconds(next))) {
    next = registry_.poke_idle(options_.limits.idle);
    // The coarse clock is behind the one that wakes us.
    next += std::chrono::nanoseconds(std::chrono::milliseconds(5)).count();
  }
  helpers_.done();
}

bool ServerCore::shutdown(Deadline grace) {
  stopping_.store(true, relaxed);  // Relaxed: the poke of each connection publishes it.
  stop_.request_stop();
  stopped_.set();
  helpers_.wait();  // From now on no connection is added.
  registry_.poke_all();
  bool in_time = connections_.wait_until(grace);
  if (!in_time) {
    (void)scope_.cancel();
    registry_.close_all();
    connections_.wait();
  }
  if (own_pool_ != nullptr) {
    own_pool_->close(Close::drain);
    own_pool_->join();
  }
  return in_time;
}

void ServerCore::report(std::exception_ptr exception) const noexcept {
  try {
    if (options_.on_exception) {
      options_.on_exception(exception);
      return;
    }
    std::rethrow_exception(exception);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "weft::http: a handler has thrown: %s\n", failure.what());
  } catch (...) {
    std::fprintf(stderr, "weft::http: a handler has thrown\n");
  }
}

ServerStats ServerCore::stats() const noexcept {
  return {.accepted = accepted_.load(relaxed),
          .connections = registry_.size(),
          .requests = registry_.requests(),
          .refused = refused_.load(relaxed),
          .malformed = malformed_.load(relaxed),
          .accept_pauses = pauses_.load(relaxed)};
}

Server::Server(Handler handler, ServerOptions options)
    : core_(std::make_unique<ServerCore>(std::move(handler), std::move(options))) {}

Server::~Server() { (void)shutdown(Deadline::past()); }

std::error_code Server::serve(net::TcpListener& listener) { return core_->serve(listener); }

bool Server::shutdown(Deadline grace) { return core_->shutdown(grace); }

ServerStats Server::stats() const noexcept { return core_->stats(); }

}  // namespace weft::http
