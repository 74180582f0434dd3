// A server's listeners, and its end.
#include <mutex>
#include <new>
#include <optional>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "net/server_core.hpp"
#include "net/transfer.hpp"

namespace weft::net {

// Relaxed: numbers that are only counted, and hints before an edge; see server_core.hpp.
using detail::relaxed;
using detail::release;

namespace {

// The service of a connection, as a task: destroyed without having been run it refuses it.
class Start {
 public:
  explicit Start(Served& connection) noexcept : connection_(&connection) {}
  Start(Start&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  Start& operator=(Start&&) = delete;
  ~Start() {
    if (connection_ != nullptr) connection_->core.refuse(*connection_);
  }
  void operator()() {
    Served& connection = *std::exchange(connection_, nullptr);
    connection.core.serve(connection);
  }

 private:
  Served* connection_;
};

}  // namespace

template <class Visit>
void Server::Core::for_each(Visit visit) {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (Served* each = shard.first; each != nullptr; each = each->next) visit(*each);
  }
}

void Server::Core::begin(Connection::AnyStream&& stream) {
  const std::uint64_t number = accepted_.fetch_add(1, relaxed);
  Shard& shard = shards_[number % shards_.size()];
  auto* connection = new (std::nothrow) Served(*this, std::move(stream), shard);
  if (connection == nullptr) {
    refused_.fetch_add(1, relaxed);
    ended_.fetch_add(1, relaxed);
    if (options_.max_connections != 0) slots_.release();
    return;
  }
  {
    const std::lock_guard lock(shard.mutex);
    connection->next = shard.first;
    if (shard.first != nullptr) shard.first->previous = connection;
    shard.first = connection;
  }
  open_.add();
  Start start(*connection);
  try {
    detail::Task task(std::move(start));
    if (options_.run) {
      (void)options_.run(std::move(task));
    } else {
      detail::spawn(std::move(task), {.stack_size = options_.stack_size});
    }
  } catch (const std::system_error&) {
    // Too many fibers: with the task the connection has been refused.
  } catch (const std::bad_alloc&) {
  }
}

// With a place for it, if places are limited.
Result<Socket> Server::Core::next_connection(const AnyListener& listener, const Until& until) {
  const bool limited = options_.max_connections != 0;
  const bool waits = limited && options_.at_limit == AtLimit::wait;
  if (waits && !slots_.try_acquire_until(until)) return {.error = Errc::cancelled};
  for (;;) {
    const io::IoUse use(listener.socket().handle());
    Result<Socket> result;
    result.error = Errc::closed;
    if (use) result = accept_once(*use, until);
    if (result.error) {
      if (waits) slots_.release();
      return result;
    }
    if (!limited || waits || slots_.try_acquire()) return result;
    accepted_.fetch_add(1, relaxed);
    refused_.fetch_add(1, relaxed);
    ended_.fetch_add(1, relaxed);
    give_away(ByteStream(std::move(result.value)));
  }
}

std::error_code Server::Core::accept_from(const AnyListener& listener) {
  const std::stop_token token = drain_.get_token();
  Pauses pauses;
  ReserveDescriptor reserve;
  for (;;) {
    auto [socket, error] = next_connection(listener, token);
    if (!error) {
      pauses.reset();
      begin(listener.to_stream(std::move(socket)));
    } else if (passes_by_itself(error)) {
      if (!wait_out(listener, error, pauses, reserve)) break;
    } else if (error == Errc::cancelled || error == Errc::closed) {
      break;
    } else {
      drain();
      return error;
    }
  }
  drain();
  // Whoever has connected before the end is served.
  for (;;) {
    auto [socket, error] = next_connection(listener, Deadline::past());
    if (error) break;
    begin(listener.to_stream(std::move(socket)));
  }
  listener.close();
  return {};
}

// False: the server drains.
bool Server::Core::wait_out(const AnyListener& listener, std::error_code error, Pauses& pauses,
                            ReserveDescriptor& reserve) {
  pauses_.fetch_add(1, relaxed);
  const bool lacks_descriptors =
      error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system;
  // A burst passes in a moment; whoever waits longer is better told.
  if (lacks_descriptors && pauses.count() >= 3) refuse_waiting(listener, reserve);
  const std::stop_token token = drain_.get_token();
  return this_fiber::sleep_for(pauses.next(), token);
}

void Server::Core::refuse_waiting(const AnyListener& listener, ReserveDescriptor& reserve) {
  constexpr int kMost = 64;
  for (int i = 0; i < kMost; ++i) {
    reserve.take();
    const io::IoUse use(listener.socket().handle());
    if (!use || !reserve.give()) return;
    auto [socket, error] = accept_once(*use, Deadline::past());
    if (!error) {
      accepted_.fetch_add(1, relaxed);
      refused_.fetch_add(1, relaxed);
      ended_.fetch_add(1, relaxed);
      give_away(ByteStream(std::move(socket)));
      socket = {};
    }
    reserve.take();
    if (error) return;
  }
}

std::error_code Server::Core::run(std::span<const AnyListener> listeners, Handler handler) {
  handler_ = std::move(handler);
  std::vector<JoinHandle<std::error_code>> others;
  std::error_code first;
  {
    std::optional<JoinHandle<void>> sweeper;
    // Also if a fiber cannot be started: the handles join.
    struct Drain {
      Core& core;
      ~Drain() { core.drain(); }
    };
    const Drain drain_at_the_end{*this};
    if (options_.idle_timeout != kNever) sweeper = spawn([this] { sweep(); });
    for (const AnyListener& listener : listeners.subspan(listeners.empty() ? 0 : 1)) {
      others.push_back(spawn([this, &listener] { return accept_from(listener); }));
    }
    if (!listeners.empty()) first = accept_from(listeners.front());
    for (auto& other : others) {
      const std::error_code error = other.join();
      if (!first) first = error;
    }
  }
  end_connections();
  return first;
}

void Server::Core::end_connections() {
  draining_.store(true, release);  // [draining]
  const auto wake_idle = [](Served& each) {
    const io::IoUse use(each.handle());
    if (use) (void)use->read().notify();
  };
  for_each(wake_idle);
  if (!open_.wait_until(Deadline::after(options_.grace))) {
    for_each([this](Served& each) {
      closed_late_.fetch_add(1, relaxed);
      each.bytes().close();
    });
    open_.wait();
  }
}

// Ends connections that have been idle for too long.
void Server::Core::sweep() {
  const std::stop_token token = drain_.get_token();
  const auto pause =
      std::max<std::chrono::nanoseconds>(options_.idle_timeout / 4, std::chrono::milliseconds(1));
  while (this_fiber::sleep_for(pause, token)) {
    const std::int64_t oldest = Deadline::now_nanoseconds() - options_.idle_timeout.count();
    for_each([oldest](Served& each) {
      const std::int64_t since = each.idle_since.load(relaxed);
      if (since == 0 || since > oldest) return;
      each.expired.store(true, relaxed);
      const io::IoUse use(each.handle());
      if (use) (void)use->read().notify();
    });
  }
}

ServeStats Server::Core::stats() const noexcept {
  ServeStats stats;
  const std::uint64_t ended = ended_.load(relaxed);
  stats.accepted = accepted_.load(relaxed);
  stats.refused = refused_.load(relaxed);
  stats.open = stats.accepted > ended ? stats.accepted - ended : 0;
  stats.pauses = pauses_.load(relaxed);
  stats.timed_out = timed_out_.load(relaxed);
  stats.closed_late = closed_late_.load(relaxed);
  return stats;
}

Server::Server(ServeOptions options) : core_(std::make_unique<Core>(std::move(options))) {}
Server::~Server() = default;

std::error_code Server::run(std::span<const AnyListener> listeners, Handler handler) {
  return core_->run(listeners, std::move(handler));
}
void Server::drain() noexcept { core_->drain(); }
bool Server::is_draining() const noexcept { return core_->is_draining(); }
ServeStats Server::stats() const noexcept { return core_->stats(); }

Result<std::vector<TcpListener>> listen_shared(const Address& address, std::size_t count,
                                               ListenOptions options) {
  options.reuse_port = true;
  Result<std::vector<TcpListener>> result;
  Address shared = address;
  for (std::size_t i = 0; i < count; ++i) {
    auto [listener, error] = TcpListener::listen(shared, options);
    if (error) return {.error = error};
    // The first one's port is everybody's, also if the system chose it.
    if (i == 0) shared = listener.local_address().value;
    result.value.push_back(std::move(listener));
  }
  return result;
}

}  // namespace weft::net
