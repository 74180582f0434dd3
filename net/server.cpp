// A server's listeners, and its end.
#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <weft/detail/guard.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "net/server_core.hpp"
#include "net/server_metrics.hpp"
#include "net/transfer.hpp"

namespace weft::net {

// Relaxed: numbers that are only counted, and hints before an edge; see server_core.hpp.
using detail::relaxed;
using detail::release;

namespace {

std::size_t at_least_one(std::size_t max_connections) {
  if (max_connections > 0) return max_connections;
  throw std::invalid_argument("weft::net::ServerOptions: max_connections = 0; must be at least 1");
}

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

// Accepts one connection, as accept_once() does; the listener may be closed by now.
Result<Socket> accept_from_open(const AnyListener& listener, const Until& until) {
  const io::IoUse use(listener.socket().handle());
  if (!use) return {.error = Errc::closed};
  return accept_once(*use, until);
}

}  // namespace

template <class Visit>
void Server::Core::for_each(Visit visit) {
  for (Shard& shard : shards_) {
    const detail::Guard lock(shard.mutex);
    for (Served* each = shard.first; each != nullptr; each = each->next) visit(*each);
  }
}

void Server::Core::begin(Connection::AnyStream&& stream) noexcept {
  const std::uint64_t number = counts_.accepted.fetch_add(1, relaxed);
  Shard& shard = shards_[number % shards_.size()];
  auto* connection = new (std::nothrow) Served(*this, std::move(stream), shard);
  if (connection == nullptr) {
    counts_.refused.fetch_add(1, relaxed);
    counts_.ended.fetch_add(1, relaxed);
    give_place();
    return;
  }
  open_.add();
  others_.add();
  {
    const detail::Guard lock(shard.mutex);
    connection->next = shard.first;
    if (shard.first != nullptr) shard.first->previous = connection;
    shard.first = connection;
  }
  // The fiber that closes all that is left may have gone through the list before.
  if (late_.stop_requested()) return refuse(*connection);
  start(*connection);
}

// Has the connection served, by `run` or by a fiber; now or, if `run` waits, later.
void Server::Core::start(Served& connection) noexcept {
  open_.add();  // The connection may end, and with it the server, before `run` has returned.
  try {
    detail::Task task{Start(connection)};
    if (options_.run) {
      (void)options_.run(std::move(task));
    } else {
      detail::spawn(std::move(task), {.stack_size = options_.stack_size});
    }
  } catch (const std::system_error&) {
    // Too many fibers: with the task the connection has been refused.
  } catch (const std::bad_alloc&) {
  } catch (...) {
    {
      const detail::Guard lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    stop();
  }
  open_.done();  // The last access.
}

bool Server::Core::take_place(const Until& until) noexcept {
  if (options_.max_connections == kUnlimited) return true;
  return options_.at_limit == AtLimit::wait ? slots_.try_acquire_until(until)
                                            : slots_.try_acquire();
}

void Server::Core::give_place() noexcept {
  if (options_.max_connections != kUnlimited) slots_.release();
}

// Returns it with a place for it, if places are limited.
Result<Socket> Server::Core::next_connection(const AnyListener& listener, const Until& until) {
  const bool waits = options_.at_limit == AtLimit::wait;
  if (waits && !take_place(until)) return {.error = Errc::cancelled};
  for (;;) {
    Result<Socket> result = accept_from_open(listener, until);
    if (result.error) {
      if (waits) give_place();
      return result;
    }
    if (waits || take_place(until)) return result;
    turn_away(std::move(result.value));
  }
}

std::error_code Server::Core::accept_from(const AnyListener& listener) noexcept {
  const std::stop_token token = drain_.get_token();
  Pauses pauses;
  ReserveDescriptor reserve;
  std::error_code failure;
  while (!is_stopping()) {
    auto [socket, error] = next_connection(listener, token);
    if (!error) {
      pauses.reset();
      // A refused client may still have the reserve. Until it is back each free descriptor lets one
      // more client be answered, instead of being served while the others wait for an answer.
      if (reserve.take()) {
        begin(listener.to_stream(std::move(socket)));
      } else {
        give_place();
        turn_away(std::move(socket));
      }
    } else if (passes_by_itself(error)) {
      wait_out(listener, error, pauses, reserve);
    } else {
      if (error != Errc::cancelled && error != Errc::closed) failure = error;
      stop();
    }
  }
  begin_last(listener);
  return failure;
}

// A client that has connected before the end is served as places come, until the grace is over.
void Server::Core::begin_last(const AnyListener& listener) noexcept {
  const std::stop_token late = late_.get_token();
  std::vector<Socket> last;
  while (!late.stop_requested()) {
    auto [socket, error] = accept_from_open(listener, Deadline::past());
    if (error) break;
    try {
      last.push_back(std::move(socket));
    } catch (const std::bad_alloc&) {
      turn_away(std::move(socket));
    }
  }
  listener.close();
  for (Socket& each : last) {
    if (!late.stop_requested() && take_place(late)) {
      begin(listener.to_stream(std::move(each)));
    } else {
      turn_away(std::move(each));
    }
  }
}

void Server::Core::wait_out(const AnyListener& listener, std::error_code error, Pauses& pauses,
                            ReserveDescriptor& reserve) {
  counts_.pauses.fetch_add(1, relaxed);
  const bool lacks_descriptors =
      error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system;
  if (pauses.count() == kRefusalsToReport) report_refusals(error);
  // A burst passes in a moment; a client that waits longer is better refused.
  if (lacks_descriptors && pauses.count() >= 3) refuse_waiting(listener, reserve);
  (void)this_fiber::sleep_for(pauses.next(), drain_.get_token());
}

void Server::Core::refuse_waiting(const AnyListener& listener, ReserveDescriptor& reserve) {
  constexpr int kMost = 64;
  for (int i = 0; i < kMost; ++i) {
    (void)reserve.take();
    if (!reserve.give()) return;
    auto [socket, error] = accept_from_open(listener, Deadline::past());
    if (error) break;
    turn_away(std::move(socket));
  }
  (void)reserve.take();
}

// Refuses a connection for which there is no place.
void Server::Core::turn_away(Socket&& socket) noexcept {
  counts_.accepted.fetch_add(1, relaxed);
  counts_.refused.fetch_add(1, relaxed);
  counts_.ended.fetch_add(1, relaxed);
  give_away(ByteStream(std::move(socket)));
}

void Server::Core::start_accepting(std::span<const AnyListener> listeners,
                                   std::span<std::error_code> errors) {
  // Until all accept: shutdown() waits for each of them.
  struct Starting {
    WaitGroup& accepting;
    ~Starting() { accepting.done(); }
  };
  accepting_.add();
  const Starting starting{accepting_};
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    accepting_.go(
        [this, &listener = listeners[i], &error = errors[i]] { error = accept_from(listener); });
  }
}

std::error_code Server::Core::serve(std::span<const AnyListener> listeners) {
  std::optional<JoinHandle<void>> sweeper;
  std::vector<std::error_code> errors;  // One for each listener.
  {
    // Runs also if a fiber cannot be started. The grace is counted here: accepting fibers may be
    // waiting for `run`.
    struct End {
      Core& core;
      std::span<const AnyListener> listeners;
      ~End() {
        core.stop();
        core.end_connections();
        for (const AnyListener& listener : listeners) listener.close();  // Some may have no fiber.
      }
    };
    const End end{*this, listeners};
    errors.resize(listeners.size());
    if (options_.idle_timeout != kNever) sweeper = spawn([this] { sweep(); });
    start_accepting(listeners, errors);
    if (!listeners.empty()) {
      (void)this_fiber::sleep_until(Deadline::never(), drain_.get_token());
    }
  }
  if (failure_) std::rethrow_exception(failure_);  // No fiber is left to set it.
  const auto first = std::ranges::find_if(errors, [](std::error_code error) { return !!error; });
  return first != errors.end() ? *first : std::error_code();
}

bool Server::Core::wait_for_end(WaitGroup& connections, const Until& until) noexcept {
  return accepting_.wait_until(until) && connections.wait_until(until);
}

// A connection that begins later is refused.
void Server::Core::close_all(const Served* except) noexcept {
  (void)late_.request_stop();
  for_each([this, except](Served& each) {
    if (&each == except) return;
    if (!std::exchange(each.is_closed_late, true)) counts_.closed_late.fetch_add(1, relaxed);
    each.bytes().close();
  });
}

void Server::Core::end_connections() noexcept {
  draining_.store(true, release);  // [draining]
  for_each([](Served& each) {
    const io::IoUse use(each.handle());
    if (use) (void)use->read().notify();
  });
  const std::stop_token taken_over = taken_over_.request.get_token();
  if (wait_for_end(open_, {Deadline::after(options_.grace), taken_over})) return;
  if (taken_over.stop_requested()) {
    // Handlers that have called shutdown() have the grace once it is over for the others.
    (void)wait_for_end(others_, Deadline::at_nanoseconds(taken_over_.limit.load(relaxed)));
    if (wait_for_end(open_, Deadline::after(options_.grace))) return;
  }
  close_all(nullptr);
  (void)wait_for_end(open_, {});
}

Served* Server::Core::find_caller() noexcept {
  const std::uint64_t fiber = this_fiber::id();
  Served* found = nullptr;
  if (fiber == 0) return found;
  for_each([&](Served& each) {
    if (each.fiber.load(relaxed) == fiber) found = &each;
  });
  return found;
}

bool Server::Core::shutdown(Deadline grace) {
  taken_over_.limit.store(grace.nanoseconds(), relaxed);
  (void)taken_over_.request.request_stop();
  stop();
  if (Served* const own = find_caller()) return shut_down_in(*own, grace);
  if (wait_for_end(open_, grace)) return true;
  close_all(nullptr);
  (void)wait_for_end(open_, {});
  return false;
}

// A handler waits for all connections but its own, and for none whose handler waits likewise. It
// does not wait without a limit for one that may need its place, nor for a fiber that accepts,
// which may be its own.
bool Server::Core::shut_down_in(Served& own, Deadline grace) noexcept {
  if (!std::exchange(own.is_excused, true)) others_.done();
  if (others_.wait_until(grace)) return true;
  close_all(&own);
  return false;
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

Server::Core::Core(Handler handler, ServerOptions options)
    : handler_(std::move(handler)),
      options_(std::move(options)),
      slots_(at_least_one(options_.max_connections)),
      counts_{.shown = make_metrics(options_.name, [this] { return stats(); })},
      stop_(options_.stop, [this] { stop(); }) {}

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
    // All have the first one's port, also if the system chose it.
    if (i == 0) shared = listener.local_address().value;
    result.value.push_back(std::move(listener));
  }
  return result;
}

}  // namespace weft::net
