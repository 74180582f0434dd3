// A server's connections: what they do while they are served, and while they are idle.
#include <cstdio>
#include <exception>
#include <weft/detail/guard.hpp>
#include <weft/this_fiber.hpp>

#include "net/server_core.hpp"
#include "net/transfer.hpp"

namespace weft::net {

// Relaxed: numbers that are only counted, and hints before an edge; see server_core.hpp.
using detail::relaxed;

Result<void> Connection::wait_readable(const Until& until) {
  const io::IoUse use(bytes().socket().handle());
  if (!use) return Errc::closed;
  io::IoDirection& direction = use->read();
  for (bool tries = direction.worth_trying();; tries = true) {
    const bool ends = is_stopping();
    if ((tries || ends) && is_readable(use->descriptor())) {
      direction.set_drained(false);  // The wait may have used up the edge.
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
  const detail::Guard lock(mutex_);
  return std::move(stream_);
}

void Server::Core::finish(Served& connection) noexcept {
  {
    const detail::Guard lock(connection.shard.mutex);
    (connection.previous == nullptr ? connection.shard.first : connection.previous->next) =
        connection.next;
    if (connection.next != nullptr) connection.next->previous = connection.previous;
  }
  if (!connection.is_excused) others_.done();
  delete &connection;
  counts_.ended.fetch_add(1, relaxed);
  give_place();
  open_.done();  // The last access.
}

void Server::Core::refuse(Served& connection) noexcept {
  counts_.refused.fetch_add(1, relaxed);
  Connection::AnyStream stream = connection.shown(draining_).take();
  give_away(std::visit([](auto& each) { return ByteStream(std::move(each)); }, stream));
  finish(connection);
}

void Server::Core::give_away(ByteStream&& stream) noexcept {
  if (options_.on_refused) options_.on_refused(std::move(stream));
}

void Server::Core::serve(Served& connection) {
  struct Finish {
    Served* connection;
    ~Finish() {
      if (connection != nullptr) connection->core.finish(*connection);
    }
  };
  Finish finish{&connection};
  Connection shown = connection.shown(draining_);
  for (;;) {
    if (handle(connection, shown) == Next::close) return;
    const Idle idle = become_idle(connection);
    if (idle == Idle::over) return;
    if (idle == Idle::readable) continue;
    finish.connection = nullptr;  // Perhaps gone by now.
    return;
  }
}

// Calls the handler. What it throws concerns its connection alone, which is closed.
Next Server::Core::handle(Served& served, Connection& connection) noexcept {
  served.fiber.store(this_fiber::id(), relaxed);
  Next next = Next::close;
  try {
    next = handler_(connection);
  } catch (...) {
    report(std::current_exception());
  }
  served.fiber.store(0, relaxed);
  return next;
}

// What on_exception throws itself is written to stderr, too.
void Server::Core::report(const std::exception_ptr& exception) const noexcept {
  try {
    if (options_.on_exception) return options_.on_exception(exception);
    std::rethrow_exception(exception);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "weft::net: a handler has thrown: %s\n", failure.what());
  } catch (...) {
    std::fprintf(stderr, "weft::net: a handler has thrown\n");
  }
}

Server::Core::Idle Server::Core::become_idle(Served& connection) {
  const io::IoUse use(connection.handle());
  if (!use) return Idle::over;
  io::IoDirection& direction = use->read();
  if (direction.worth_trying() && is_readable(use->descriptor())) {
    direction.set_drained(false);
    return Idle::readable;
  }
  // The edge of a drain may have been taken for one of the peer's. The call that took it, above or
  // in the handler, sees the flag here. One that comes later is left for the watch.
  if (draining_.load(detail::acquire)) return Idle::over;  // [draining]
  try {
    connection.waker =
        detail::spawn_parked(detail::Task([&connection] { connection.core.resume(connection); }),
                             detail::WaitReason::readable);
  } catch (const std::exception&) {
    // No record for a fiber that waits: this one does.
    const Deadline limit = Deadline::after(options_.idle_timeout);
    return connection.shown(draining_).wait_readable(limit) ? Idle::readable : Idle::over;
  }
  connection.idle_since.store(Deadline::now_nanoseconds(), relaxed);
  direction.add_watch(connection);
  return Idle::parked;
}

void Server::Core::resume(Served& connection) {
  connection.idle_since.store(0, relaxed);
  const bool expired = connection.expired.load(relaxed);
  Idle found = Idle::over;
  if (const io::IoUse use(connection.handle()); use) {
    use->read().set_drained(false);  // The watch has used up the edge, which may tell of nothing.
    if (!expired) {
      found = become_idle(connection);
    } else if (is_readable(use->descriptor())) {
      found = Idle::readable;  // A request that has come is not lost.
    }
  }
  if (found == Idle::readable) {
    connection.expired.store(false, relaxed);
    // This fiber is as good as a new one, except for its stack.
    if (options_.run || options_.stack_size != 0) {
      start(connection);
    } else {
      serve(connection);
    }
  } else if (found == Idle::over) {
    if (expired) counts_.timed_out.fetch_add(1, relaxed);
    finish(connection);
  }
}

}  // namespace weft::net
