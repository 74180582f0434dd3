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

#include "libs/http/server/longest.hpp"
#include "libs/http/server/meter.hpp"
#include "net/connections.hpp"

namespace weft::http {

class Connection;

class ServerCore {
 public:
  ServerCore(Handler handler, ServerOptions options);

  std::error_code serve(std::span<net::TcpListener> listeners);
  void stop() noexcept;
  bool shutdown(Deadline grace);
  // The fiber that serves it, or accepted it, calls this. Deletes it.
  void end_connection(Connection& connection) noexcept;

  [[nodiscard]] const Limits& limits() const noexcept { return options_.limits; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Handler& handler() const noexcept { return handler_; }
  // Null: handlers run in the fibers of their connections.
  [[nodiscard]] FiberPool* pool() const noexcept { return pool_; }
  // Each connection that must see it is poked later.
  [[nodiscard]] bool stopping() const noexcept { return stop_.stop_requested(); }
  // A new connection is one on which nothing has been asked yet. These end a little later, because
  // a client that has just connected may be about to ask.
  [[nodiscard]] std::stop_token end_of_new_connections() const noexcept {
    return new_end_.get_token();
  }
  // Requested when the server stops.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  // The scope of all requests.
  [[nodiscard]] const Context& scope() const noexcept { return scope_; }
  void report(std::exception_ptr exception) const noexcept;

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
  // Relaxed, both: they are only counted.
  detail::Atomic<std::uint64_t> accept_pauses_{0};
  detail::Atomic<std::uint64_t> turned_away_{0};
  Semaphore room_;
  Context scope_;
  std::stop_source stop_;
  std::stop_source new_end_;
  detail::Atomic<bool> ends_by_itself_{false};  // stop() was called: serve() shuts down.
  Meter meter_;
  std::stop_callback<std::function<void()>> asked_to_stop_;  // Last: it may call at once.
};

}  // namespace weft::http
