// Holds the state that the connections of a server share.
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

#include "libs/http/server/longest.hpp"
#include "libs/http/server/meter.hpp"
#include "libs/http/server/server_connection.hpp"
#include "net/connections.hpp"
#include "net/report.hpp"

namespace weft::http {

class ServerCore {
 public:
  ServerCore(Handler handler, ServerOptions options);

  std::error_code serve(std::span<const net::AnyListener> listeners);
  void stop() noexcept;
  bool shutdown(Deadline grace);
  // Deletes the connection. Only the fiber that accepted or serves it may call end_connection().
  void end_connection(ServerConnection& connection) noexcept {
    connections_.remove(connection);
    delete &connection;
    room_.release();
    connections_.release();  // Must be the last access to this object.
  }

  [[nodiscard]] const Limits& limits() const noexcept { return options_.limits; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Handler& handler() const noexcept { return handler_; }
  // Returns the pool for handlers; null if handlers run in the fibers of their connections.
  [[nodiscard]] FiberPool* pool() const noexcept { return pool_; }
  // Returns whether the server is stopping. shutdown() wakes the idle connections, which then
  // notice the stop.
  [[nodiscard]] bool stopping() const noexcept { return stop_.stop_requested(); }
  // Returns the token whose stop request ends connections that have had no request yet. These
  // connections end a little later than the stop, because a client that has just connected may be
  // about to send a request.
  [[nodiscard]] std::stop_token end_of_new_connections() const noexcept {
    return new_end_.get_token();
  }
  // When a connection's fiber finds no bytes, it calls must_end(). Returns true if the connection
  // has been idle for too long, or the server is stopping. While the server is stopping, a
  // connection that has had no request yet may stay a little longer.
  [[nodiscard]] bool must_end(const ServerConnection& connection) const noexcept {
    const bool is_new = connection.requests() == 0 && !new_end_.stop_requested();
    return (stopping() && !is_new) || connections_.has_been_idle_for_long(connection);
  }
  // Returns the token whose stop is requested when the server starts to stop.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  // Returns the parent context of all requests.
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
  void turn_away(net::ByteStream& stream) noexcept;

  const Handler handler_;
  const ServerOptions options_;
  std::unique_ptr<FiberPool> own_pool_;
  FiberPool* const pool_;
  net::Connections connections_;
  WaitGroup loops_;
  // All accesses to these two counts are relaxed.
  detail::Atomic<std::uint64_t> accept_pauses_{0};
  detail::Atomic<std::uint64_t> turned_away_{0};
  Semaphore room_;
  Context scope_;
  std::stop_source stop_;
  std::stop_source new_end_;
  detail::Atomic<bool> ends_by_itself_{false};  // True after stop(); serve() then shuts down.
  Meter meter_;
  // Must be the last field, because the callback may run in the constructor.
  std::stop_callback<std::function<void()>> asked_to_stop_;
};

}  // namespace weft::http
