#include "libs/http/client/host_pool.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <weft/detail/guard.hpp>
#include <weft/http/error.hpp>

namespace weft::http {

std::error_code ClientConnection::receive(std::size_t most, const Until& until) {
  const std::span<char> room = input.make_room(most);
  if (room.empty()) return Errc::head_too_large;
  const auto [count, error] = read(std::as_writable_bytes(room), until);
  if (error == weft::Errc::end_of_stream) return Errc::unexpected_end;
  if (!error) input.filled(count);
  return error;
}

Lease::~Lease() {
  if (pool_ == nullptr) return;
  // Destroys the connection first, because the slot's next owner may make a new connection.
  connection_.reset();
  pool_->slots.release();
}

void Lease::keep() noexcept {
  connection_->reused = true;
  pool_->keep(std::move(connection_));
}

void HostPool::keep(std::unique_ptr<ClientConnection> connection) noexcept {
  Connections unwatched;  // Destroyed after `guard` unlocks.
  const detail::Guard guard(mutex_);
  connection->idle_since = Deadline::now_nanoseconds();
  try {
    connections_.push_back(std::move(connection));
  } catch (const std::bad_alloc&) {
    return;  // The destructor of `connection` closes it.
  }
  unwatched = watch();
}

std::unique_ptr<ClientConnection> HostPool::take() {
  Connections old;  // Destroyed after `guard` unlocks.
  const detail::Guard guard(mutex_);
  old = take_old();
  if (connections_.empty()) return nullptr;
  auto connection = std::move(connections_.back());
  connections_.pop_back();
  return connection;
}

HostPool::Connections HostPool::take_old() {
  const std::int64_t oldest = Deadline::now_nanoseconds() - idle_.count();
  const auto young = std::find_if(connections_.begin(), connections_.end(),
                                  [oldest](const auto& each) { return each->idle_since > oldest; });
  Connections old(std::move_iterator(connections_.begin()), std::move_iterator(young));
  connections_.erase(connections_.begin(), young);
  return old;
}

// Schedules a sweep for the time at which the first connection becomes too old. If memory runs out,
// no sweep will close the connections, so the function returns them, and the caller closes them.
HostPool::Connections HostPool::watch() noexcept {
  if (is_watched_ || connections_.empty()) return {};
  const std::int64_t since = connections_.front()->idle_since;
  const std::int64_t most = Deadline::never().nanoseconds() - since;
  const auto due = Deadline::at_nanoseconds(since + std::min<std::int64_t>(idle_.count(), most));
  try {
    // The pointer is weak, so that the pool can end before the sweep. The pool's destructor cancels
    // the sweep.
    sweep_ = call_at(due, [weak = weak_from_this()] {
      if (const auto pool = weak.lock()) pool->sweep();
    });
  } catch (const std::exception&) {
    return std::exchange(connections_, {});
  }
  is_watched_ = true;
  return {};
}

// Closes old connections. Runs in a fiber that no caller joins.
void HostPool::sweep() noexcept {
  Connections old;  // Destroyed, like `unwatched`, after the unlock.
  Connections unwatched;
  const detail::Guard guard(mutex_);
  try {
    old = take_old();
  } catch (const std::bad_alloc&) {
    old.swap(connections_);
  }
  is_watched_ = false;
  unwatched = watch();
}

}  // namespace weft::http
