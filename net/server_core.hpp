// The implementation of Server.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <system_error>
#include <utility>
#include <weft/detail/metrics_source.hpp>
#include <weft/mutex.hpp>
#include <weft/net/serve.hpp>
#include <weft/semaphore.hpp>
#include <weft/wait_group.hpp>

#include "net/acceptor.hpp"
#include "net/connections.hpp"

namespace weft::net {

// The server's record of one connection.
struct Served : ConnectionRecord {
  Served(Server::Core& server, Connection::AnyStream&& connected) noexcept
      : ConnectionRecord(kBusy), core(server), stream(std::move(connected)) {}

  [[nodiscard]] ByteStream& bytes() noexcept {
    return std::visit([](auto& each) -> ByteStream& { return each; }, stream);
  }
  [[nodiscard]] io::IoHandle* handle() noexcept { return bytes().socket().handle(); }

  Server::Core& core;
  Connection::AnyStream stream;
  std::unique_ptr<Connection::AnyState> state;  // Destroyed before the stream.
  std::unique_ptr<const ProxyHeader> proxied;   // Null: the connection has no PROXY header.
  bool is_new = true;                           // A PROXY header may not have been read yet.
};

// The implementation of a server, shared with its fibers.
class Server::Core final : private Acceptor {
 public:
  Core(Handler handler, ServerOptions options);

  std::error_code serve(std::span<const AnyListener> listeners);
  using Acceptor::is_stopping;
  using Acceptor::stop;
  bool shutdown(Deadline grace);
  [[nodiscard]] ServerStats stats() const noexcept;

  // Calls the handler, in the connection's fiber, until the connection ends or is idle.
  void serve(Served& connection);
  // Refuses the connection instead of serving it.
  void refuse(Served& connection) noexcept;

 private:
  // All are relaxed, because they are only counts.
  struct Counts {
    detail::Atomic<std::uint64_t> accepted{0};
    detail::Atomic<std::uint64_t> refused{0};
    detail::Atomic<std::uint64_t> ended{0};
    detail::Atomic<std::uint64_t> pauses{0};
    detail::Atomic<std::uint64_t> timed_out{0};
    detail::Atomic<std::uint64_t> closed_late{0};
    // Null: the server has no name. Declared last, because readings of the metrics use the other
    // members.
    std::unique_ptr<detail::MetricsSource> shown = nullptr;
  };
  // Set by shutdown(): its deadline applies from then on.
  struct Takeover {
    std::stop_source request;
    detail::Atomic<std::int64_t> limit{0};  // Nanoseconds; the stop request publishes it.
    WaitGroup calls;                        // Calls that may still close connections.
  };
  enum class Idle : std::uint8_t { readable, parked, over };

  [[nodiscard]] bool take_place(const Until& until) noexcept override;
  void give_place() noexcept override;
  void begin(Connection::AnyStream&& stream) noexcept override;
  void turn_away(ByteStream&& stream) noexcept override;
  void count_pause() noexcept override { counts_.pauses.fetch_add(1, detail::relaxed); }

  void start(Served& connection) noexcept;
  void resume(Served& connection);
  void finish(Served& connection) noexcept;
  [[nodiscard]] Connection shown(Served& connection) noexcept;
  [[nodiscard]] bool read_header(Served& connection) const;
  [[nodiscard]] Next handle(Served& served, Connection& connection) noexcept;
  void give_away(ByteStream&& stream) noexcept;
  [[nodiscard]] Idle become_idle(Served& connection);
  void close_all() noexcept;
  void close_others() noexcept;
  void end_connections() noexcept;

  const Handler handler_;
  const ServerOptions options_;
  detail::Atomic<bool> draining_{false};  // Ordered as class Connection documents.
  Takeover taken_over_;
  Mutex failure_mutex_;
  // The first exception of ServerOptions::run.
  std::exception_ptr failure_ WEFT_GUARDED_BY(failure_mutex_);
  Semaphore slots_;  // Used only with max_connections.
  Connections connections_;
  Counts counts_;
  // Declared last: its callback may run at once.
  std::stop_callback<std::function<void()>> asked_to_stop_;
};

}  // namespace weft::net
