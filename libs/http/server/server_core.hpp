// The state that the connections of a server share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <system_error>
#include <weft/context.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/http/server.hpp>
#include <weft/pool.hpp>
#include <weft/semaphore.hpp>
#include <weft/wait_group.hpp>

#include "libs/http/server/connection.hpp"
#include "libs/http/server/longest.hpp"
#include "libs/http/server/meter.hpp"
#include "net/connections.hpp"
#include "net/report.hpp"

namespace weft::http {

class ServerCore {
 public:
  ServerCore(Handler handler, ServerOptions options);

  std::error_code serve(std::span<const net::AnyListener> listeners);
  void stop() noexcept;
  bool shutdown(Deadline grace);
  // The fiber that serves or accepted the connection calls this, which deletes it.
  void end_connection(Connection& connection) noexcept {
    connections_.remove(connection);
    delete &connection;
    room_.release();
    connections_.release();  // The last access.
  }

  [[nodiscard]] const Limits& limits() const noexcept { return options_.limits; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Handler& handler() const noexcept { return handler_; }
  // Null: handlers run in the fibers of their connections.
  [[nodiscard]] FiberPool* pool() const noexcept { return pool_; }
  // Each connection that must notice the stop is poked later.
  [[nodiscard]] bool stopping() const noexcept { return stop_.stop_requested(); }
  // A new connection is one that has sent no request yet. New connections end a little later,
  // because a client that has just connected may be about to send one.
  [[nodiscard]] std::stop_token end_of_new_connections() const noexcept {
    return new_end_.get_token();
  }
  // Called in a fiber that was started for a connection without bytes. Returns true if the server
  // stops, or the connection has been idle for too long. Returns false after a false alarm.
  [[nodiscard]] bool must_end(const Connection& connection) const noexcept {
    const bool is_new = connection.requests() == 0 && !new_end_.stop_requested();
    return (stopping() && !is_new) || connections_.has_been_idle_for_long(connection);
  }
  // Requested when the server stops.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  // The scope of all requests.
  [[nodiscard]] const Context& scope() const noexcept { return scope_; }
  void report(const std::exception_ptr& exception) const noexcept {
    net::report_exception(options_.on_exception, exception, "weft::http");
  }

  [[nodiscard]] Meter& meter() noexcept { return meter_; }
  [[nodiscard]] ServerStats stats() const noexcept;
  [[nodiscard]] std::vector<RequestInProgress> longest_requests(std::size_t most,
                                                                LongestBy by) const;

 private:
  class Loop;

  void take_in(net::TcpStream stream) noexcept;

  const Handler handler_;
  const ServerOptions options_;
  std::unique_ptr<FiberPool> own_pool_;
  FiberPool* const pool_;
  net::Connections connections_;
  WaitGroup loops_;
  // Relaxed, both: they are only counts.
  detail::Atomic<std::uint64_t> accept_pauses_{0};
  detail::Atomic<std::uint64_t> turned_away_{0};
  Semaphore room_;
  Context scope_;
  std::stop_source stop_;
  std::stop_source new_end_;
  detail::Atomic<bool> ends_by_itself_{false};  // stop() was called: serve() shuts down.
  Meter meter_;
  std::stop_callback<std::function<void()>> asked_to_stop_;  // Last, because it may call at once.
};

}  // namespace weft::http
