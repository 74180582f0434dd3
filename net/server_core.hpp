// The inside of a Server.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <system_error>
#include <utility>
#include <weft/detail/io_watch.hpp>
#include <weft/detail/metrics_source.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/net/serve.hpp>
#include <weft/semaphore.hpp>
#include <weft/wait_group.hpp>

#include "net/accept.hpp"

namespace weft::net {

struct Served;

// The connections of a server, so that its end finds them; in parts, so that connections that come
// and go seldom meet.
struct Shard {
  Mutex mutex;  // Guards also the links, and whether a connection still has its stream.
  Served* first WEFT_GUARDED_BY(mutex) = nullptr;
};

// The inside of a server.
class Server::Core {
 public:
  Core(Handler handler, ServerOptions options);

  std::error_code serve(std::span<const AnyListener> listeners);
  // The copy keeps what is requested, also if it ends the server.
  void stop() noexcept { (void)std::stop_source(drain_).request_stop(); }
  bool shutdown(Deadline grace);
  [[nodiscard]] bool is_stopping() const noexcept { return drain_.stop_requested(); }
  [[nodiscard]] ServerStats stats() const noexcept;

  // The fiber of a connection calls the handler until the connection ends or is idle.
  void serve(Served& connection);
  // The fiber of one that was idle calls it, once it has been notified of an edge.
  void resume(Served& connection);
  // Refuses it instead of serving it.
  void refuse(Served& connection) noexcept;
  void finish(Served& connection) noexcept;

 private:
  // Relaxed, all of them: they are only counted.
  struct Counts {
    detail::Atomic<std::uint64_t> accepted{0};
    detail::Atomic<std::uint64_t> refused{0};
    detail::Atomic<std::uint64_t> ended{0};
    detail::Atomic<std::uint64_t> pauses{0};
    detail::Atomic<std::uint64_t> timed_out{0};
    detail::Atomic<std::uint64_t> closed_late{0};
    // Null: the server has no name. Last, because its readers read the others.
    std::unique_ptr<detail::MetricsSource> shown = nullptr;
  };
  // By shutdown(), whose deadline holds then.
  struct Takeover {
    std::stop_source request;
    detail::Atomic<std::int64_t> limit{0};  // Nanoseconds; the request publishes it.
  };
  enum class Idle : std::uint8_t { readable, parked, over };

  [[nodiscard]] std::error_code accept_from(const AnyListener& listener) noexcept;
  [[nodiscard]] Result<Socket> next_connection(const AnyListener& listener, const Until& until);
  void begin_last(const AnyListener& listener) noexcept;
  void begin(Connection::AnyStream&& stream) noexcept;
  void start(Served& connection) noexcept;
  void wait_out(const AnyListener& listener, std::error_code error, Pauses& pauses,
                ReserveDescriptor& reserve);
  void refuse_waiting(const AnyListener& listener, ReserveDescriptor& reserve);
  void turn_away(Socket&& socket) noexcept;
  void give_away(ByteStream&& stream) noexcept;
  [[nodiscard]] bool take_place(const Until& until) noexcept;
  void give_place() noexcept;
  [[nodiscard]] Next handle(Served& served, Connection& connection) noexcept;
  void report(const std::exception_ptr& exception) const noexcept;
  [[nodiscard]] Idle become_idle(Served& connection);
  template <class Visit>
  void for_each(Visit visit);
  // The connection whose handler the caller is; null: none.
  [[nodiscard]] Served* find_caller() noexcept;
  [[nodiscard]] bool wait_for_end(WaitGroup& connections, const Until& until) noexcept;
  void close_all(const Served* except) noexcept;
  [[nodiscard]] bool shut_down_in(Served& own, Deadline grace) noexcept;
  void start_accepting(std::span<const AnyListener> listeners, std::span<std::error_code> errors);
  void end_connections() noexcept;
  void sweep();

  const Handler handler_;
  const ServerOptions options_;
  detail::Atomic<bool> draining_{false};  // Ordered as Connection says.
  std::stop_source drain_;
  std::stop_source late_;  // The grace is over.
  Takeover taken_over_;
  Mutex failure_mutex_;
  std::exception_ptr failure_;  // The first one of ServerOptions::run; guarded until all has ended.
  Semaphore slots_;             // With max_connections only.
  std::array<Shard, 16> shards_;
  WaitGroup accepting_;  // Fibers that accept.
  WaitGroup open_;
  WaitGroup others_;  // The same, without connections whose handlers are in shutdown().
  Counts counts_;
  std::stop_callback<std::function<void()>> stop_;  // Last: it may call at once.
};

// One connection. While it is idle, it is a watch in its socket's direction, with a fiber that has
// not begun as the one to wake.
struct Served : detail::IoWatch {
  Served(Server::Core& server, Connection::AnyStream&& connected, Shard& home) noexcept
      : IoWatch{[](IoWatch& watch) noexcept { return static_cast<Served&>(watch).waker; }},
        core(server),
        stream(std::move(connected)),
        shard(home) {}

  [[nodiscard]] ByteStream& bytes() noexcept {
    return std::visit([](auto& each) -> ByteStream& { return each; }, stream);
  }
  [[nodiscard]] io::IoHandle* handle() noexcept { return bytes().socket().handle(); }
  [[nodiscard]] Connection shown(const detail::Atomic<bool>& draining) noexcept {
    return {stream, shard.mutex, draining};
  }

  Server::Core& core;
  Connection::AnyStream stream;
  Shard& shard;
  Served* next = nullptr;  // Guarded by the shard's mutex, as is the next one.
  Served* previous = nullptr;
  detail::Waker waker;
  bool is_closed_late = false;  // Guarded by the shard's mutex.
  // Its handler has called shutdown(). Only the fiber that runs it reads and writes this.
  bool is_excused = false;
  // Relaxed: a fiber looks for itself. 0: no handler runs.
  detail::Atomic<std::uint64_t> fiber{0};
  // Relaxed, both: the edge that follows is what counts. 0: not idle.
  detail::Atomic<std::int64_t> idle_since{0};
  detail::Atomic<bool> expired{false};
};

}  // namespace weft::net
