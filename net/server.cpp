#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <weft/detail/guard.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "net/report.hpp"
#include "net/server_core.hpp"
#include "net/server_metrics.hpp"
#include "net/transfer.hpp"

namespace weft::net {

// Relaxed: counts, and hints that precede an edge.
using detail::relaxed;
using detail::release;

namespace {

std::size_t at_least_one(std::size_t max_connections) {
  if (max_connections > 0) return max_connections;
  throw std::invalid_argument("weft::net::ServerOptions: max_connections = 0; must be at least 1");
}

Result<Address> peer_address_of(const Connection::AnyStream& stream) noexcept {
  if (const auto* const tcp = std::get_if<TcpStream>(&stream)) return tcp->peer_address();
  return {.error = std::make_error_code(std::errc::address_family_not_supported)};
}

// The task that serves a connection. If the task is destroyed before it has run, it refuses the
// connection.
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

Result<void> Connection::wait_readable(const Until& until) {
  const io::IoUse use(bytes().socket().handle());
  if (!use) return Errc::closed;
  io::IoDirection& direction = use->read();
  for (bool tries = direction.worth_trying();; tries = true) {
    const bool ends = is_stopping();
    if ((tries || ends) && is_readable(use->descriptor())) {
      direction.set_drained(false);  // The wait may have consumed the edge.
      return {};
    }
    if (ends) return Errc::cancelled;
    if (direction.deadline().passed()) return Errc::timed_out;
    const io::WaitOutcome outcome = direction.wait(until, detail::WaitReason::readable);
    if (outcome == io::WaitOutcome::ready) continue;
    if (tries || outcome == io::WaitOutcome::closed || !is_readable(use->descriptor())) {
      return to_error(outcome);
    }
  }
}

Connection::AnyStream Connection::take() noexcept {
  const detail::Guard guard(lock_);
  return std::move(stream_);
}

Result<Address> Connection::peer_address() const noexcept {
  if (proxied_ != nullptr && proxied_->source) return {.value = *proxied_->source};
  return peer_address_of(stream_);
}

Server::Core::Core(Handler handler, ServerOptions options)
    : Acceptor(options.at_limit),
      handler_(std::move(handler)),
      options_(std::move(options)),
      slots_(at_least_one(options_.max_connections)),
      connections_(
          [](ConnectionRecord& connection) noexcept {
            return static_cast<Served&>(connection).handle();
          },
          options_.idle_timeout),
      counts_{.shown = make_metrics(options_.name, [this] { return stats(); })},
      asked_to_stop_(options_.stop, [this] { stop(); }) {}

bool Server::Core::take_place(const Until& until) noexcept {
  if (options_.max_connections == kUnlimited) return true;
  return options_.at_limit == AtLimit::wait ? slots_.try_acquire_until(until)
                                            : slots_.try_acquire();
}

void Server::Core::give_place() noexcept {
  if (options_.max_connections != kUnlimited) slots_.release();
}

void Server::Core::begin(Connection::AnyStream&& stream) noexcept {
  counts_.accepted.fetch_add(1, relaxed);
  auto* connection = new (std::nothrow) Served(*this, std::move(stream));
  if (connection == nullptr) {
    counts_.refused.fetch_add(1, relaxed);
    counts_.ended.fetch_add(1, relaxed);
    give_place();
    return;
  }
  connections_.add(*connection);
  // The fiber that closes all remaining connections may have walked the list before.
  if (refuses_rest()) return refuse(*connection);
  start(*connection);
}

// Starts the service of the connection, by `run` or in a fiber; it may begin later if `run` waits.
void Server::Core::start(Served& connection) noexcept {
  connections_.hold();  // The connection, and then the server, may end before `run` has returned.
  try {
    detail::Task task{Start(connection)};
    if (options_.run) {
      (void)options_.run(std::move(task));
    } else {
      detail::spawn(std::move(task), {.stack_size = options_.stack_size});
    }
  } catch (const std::system_error&) {
    // There are too many fibers. The end of the task has refused the connection.
  } catch (const std::bad_alloc&) {
  } catch (...) {
    {
      const detail::Guard lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    stop();
  }
  connections_.release();  // The last access.
}

Connection Server::Core::shown(Served& connection) noexcept {
  return {connection.stream, connections_.lock_of(connection), draining_, connection.state,
          connection.proxied.get()};
}

void Server::Core::finish(Served& connection) noexcept {
  connection.state.reset();  // The handler may need the stream, which the server's end closes.
  connections_.remove(connection);
  delete &connection;
  counts_.ended.fetch_add(1, relaxed);
  give_place();
  connections_.release();  // The last access.
}

void Server::Core::refuse(Served& connection) noexcept {
  counts_.refused.fetch_add(1, relaxed);
  connection.state.reset();
  Connection::AnyStream stream = shown(connection).take();
  give_away(std::visit([](auto& each) { return ByteStream(std::move(each)); }, stream));
  finish(connection);
}

// Counts a connection for which there is no place as refused, and passes it to on_refused.
void Server::Core::turn_away(ByteStream&& stream) noexcept {
  counts_.accepted.fetch_add(1, relaxed);
  counts_.refused.fetch_add(1, relaxed);
  counts_.ended.fetch_add(1, relaxed);
  give_away(std::move(stream));
}

void Server::Core::give_away(ByteStream&& stream) noexcept {
  if (options_.on_refused) options_.on_refused(std::move(stream));
}

// Reads the PROXY header of a connection that begins with one. Returns false if the header is
// wrong, memory runs out, or the wait ends before the header comes.
bool Server::Core::read_header(Served& connection) const {
  const ProxyProtocol& protocol = options_.proxy_protocol;
  if (!std::exchange(connection.is_new, false) || protocol.networks.empty()) return true;
  if (!protocol.networks.contains(peer_address_of(connection.stream))) return true;
  try {
    // A header that has arrived is read even while the server stops.
    const auto [header, error] =
        read_proxy_header(connection.bytes(), {Deadline::after(protocol.wait), stop_token()});
    if (error) return false;
    connection.proxied = std::make_unique<const ProxyHeader>(header);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void Server::Core::serve(Served& connection) {
  if (!options_.run && !options_.name.empty()) this_fiber::set_name(options_.name);
  if (!read_header(connection)) return refuse(connection);
  struct Finish {
    Served* connection;
    ~Finish() {
      if (connection != nullptr) connection->core.finish(*connection);
    }
  };
  Finish finish{&connection};
  Connection view = shown(connection);
  for (;;) {
    if (handle(connection, view) == Next::close) return;
    if (options_.idle_timeout != kNever) connection.note_activity(Deadline::now_nanoseconds());
    const Idle idle = become_idle(connection);
    if (idle == Idle::over) return;
    if (idle == Idle::readable) continue;
    finish.connection = nullptr;  // The connection may have been destroyed by now.
    return;
  }
}

// Calls the handler. An exception of the handler closes only its own connection.
Next Server::Core::handle(Served& served, Connection& connection) noexcept {
  served.note_activity(Served::kBusy);
  served.set_caller(this_fiber::id());
  Next next = Next::close;
  try {
    next = handler_(connection);
  } catch (...) {
    report_exception(options_.on_exception, std::current_exception(), "weft::net");
  }
  served.set_caller(0);
  return next;
}

Server::Core::Idle Server::Core::become_idle(Served& connection) {
  const io::IoUse use(connection.handle());
  if (!use) return Idle::over;
  io::IoDirection& direction = use->read();
  // A request that has arrived is served even if the idle time has ended.
  if (direction.worth_trying() && is_readable(use->descriptor())) {
    direction.set_drained(false);
    return Idle::readable;
  }
  // A call may have consumed the edge of a drain as if it were the peer's. After such a call the
  // flag is visible here; an edge that comes later stays for the watch.
  if (draining_.load(detail::acquire)) return Idle::over;  // [draining]
  if (connections_.has_been_idle_for_long(connection)) {
    counts_.timed_out.fetch_add(1, relaxed);
    return Idle::over;
  }
  const auto resumed = [&connection] { connection.core.resume(connection); };
  if (connection.wait_for_bytes(&*use, detail::Task(resumed))) return Idle::parked;
  // If there is no record for a waiting fiber, this fiber waits itself.
  const Deadline limit =
      Deadline::at_nanoseconds(later(connection.active_at(), options_.idle_timeout));
  const std::error_code error = shown(connection).wait_readable(limit);
  if (error == Errc::timed_out) counts_.timed_out.fetch_add(1, relaxed);
  return error ? Idle::over : Idle::readable;
}

// Runs in the fiber of a connection that was idle, after its watch has been notified.
void Server::Core::resume(Served& connection) {
  Idle found = Idle::over;
  if (const io::IoUse use(connection.handle()); use) {
    use->read().set_drained(false);  // The watch has consumed the edge, perhaps a false alarm.
    found = become_idle(connection);
  }
  if (found == Idle::readable) {
    // This fiber continues like a new fiber; only its stack is in use already.
    if (options_.run || options_.stack_size != 0) {
      start(connection);
    } else {
      serve(connection);
    }
  } else if (found == Idle::over) {
    finish(connection);
  }
}

std::error_code Server::Core::serve(std::span<const AnyListener> listeners) {
  {
    // Also runs if a fiber cannot be started. The grace is measured here, because accepting fibers
    // may be waiting for `run`.
    struct End {
      Core& core;
      std::span<const AnyListener> listeners;
      ~End() {
        core.stop();
        core.end_connections();
        for (const AnyListener& listener : listeners)
          listener.close();  // Some listeners have no fiber.
      }
    };
    const End end{*this, listeners};
    connections_.start_keeper();
    Acceptor::start(listeners);
    if (!listeners.empty()) (void)this_fiber::sleep_until(Deadline::never(), stop_token());
  }
  const detail::Guard lock(failure_mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return error();
}

// Connections that begin after close_all() or close_others() are refused.
void Server::Core::close_all() noexcept {
  refuse_rest();
  counts_.closed_late.fetch_add(connections_.close_all(), relaxed);
}

void Server::Core::close_others() noexcept {
  refuse_rest();
  counts_.closed_late.fetch_add(connections_.close_others(), relaxed);
}

void Server::Core::end_connections() noexcept {
  draining_.store(true, release);  // [draining]
  connections_.end_keeper();
  connections_.poke_all();
  const auto all_have_ended = [this](const Until& until) {
    return wait_until(until) && connections_.wait_for_all(until);
  };
  const std::stop_token taken_over = taken_over_.request.get_token();
  if (all_have_ended({Deadline::after(options_.grace), taken_over})) return;
  if (taken_over.stop_requested()) {
    // Each call closes what is left at its deadline, and returns whether it had to. A handler's
    // call does not see connections that are accepted after its wait. After the limit for these,
    // handlers that have called shutdown() have a grace of their own.
    taken_over_.calls.wait();
    const auto limit = Deadline::at_nanoseconds(taken_over_.limit.load(relaxed));
    if (!wait_until(limit) || !connections_.wait_for_others(limit)) close_others();
    if (all_have_ended(Deadline::after(options_.grace))) return;
  }
  close_all();
  (void)all_have_ended({});
}

// A handler that shuts down waits for all connections except its own and connections whose handlers
// shut down, too. Its waits for connections that may need its place, and for accepting fibers, have
// a limit, because the handler may run in an accepting fiber.
bool Server::Core::shutdown(Deadline grace) {
  taken_over_.calls.add();
  taken_over_.limit.store(grace.nanoseconds(), relaxed);
  (void)taken_over_.request.request_stop();
  stop();
  ConnectionRecord* const own = connections_.find_caller(this_fiber::id());
  if (own != nullptr) connections_.excuse(*own);
  const bool in_time = own != nullptr ? connections_.wait_for_others(grace)
                                      : wait_until(grace) && connections_.wait_for_all(grace);
  if (!in_time) own != nullptr ? close_others() : close_all();
  taken_over_.calls.done();
  if (in_time || own != nullptr) return in_time;
  (void)wait_until({});
  (void)connections_.wait_for_all({});
  return false;
}

ServerStats Server::Core::stats() const noexcept {
  ServerStats stats;
  const std::uint64_t ended = counts_.ended.load(relaxed);
  stats.accepted = counts_.accepted.load(relaxed);
  stats.refused = counts_.refused.load(relaxed);
  stats.open = stats.accepted > ended ? stats.accepted - ended : 0;
  stats.pauses = counts_.pauses.load(relaxed);
  stats.timed_out = counts_.timed_out.load(relaxed);
  stats.closed_late = counts_.closed_late.load(relaxed);
  return stats;
}

Server::Server(Handler handler, ServerOptions options)
    : core_(std::make_unique<Core>(std::move(handler), std::move(options))) {}
Server::~Server() = default;

Result<void> Server::serve(std::span<const AnyListener> listeners) {
  return core_->serve(listeners);
}
void Server::stop() noexcept { core_->stop(); }
bool Server::shutdown(Deadline grace) { return core_->shutdown(grace); }
bool Server::is_stopping() const noexcept { return core_->is_stopping(); }
ServerStats Server::stats() const noexcept { return core_->stats(); }

Result<std::vector<TcpListener>> listen_shared(const Address& address, std::size_t count,
                                               ListenOptions options) {
  options.reuse_port = true;
  Result<std::vector<TcpListener>> result;
  Address shared = address;
  for (std::size_t i = 0; i < count; ++i) {
    auto [listener, error] = TcpListener::listen(shared, options);
    if (error) return {.error = error};
    // All listeners have the port of the first listener, even if the system chose it.
    if (i == 0) shared = listener.local_address().value;
    result.value.push_back(std::move(listener));
  }
  return result;
}

}  // namespace weft::net
