#include "libs/http/server/registry.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <weft/detail/guard.hpp>
#include <weft/detail/invariant.hpp>

#include "io/poller.hpp"
#include "libs/http/server/connection.hpp"

namespace weft::http {

namespace {

// Streams that were found under the lock and are acted upon without it. Each counts as a call that
// uses its descriptor, so it is the same one then, whatever becomes of the connection.
class Batch {
 public:
  [[nodiscard]] bool full() const noexcept { return size_ == handles_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  void add(Connection& connection) noexcept {
    io::IoHandle* const handle = connection.stream().socket().handle();
    if (handle != nullptr && handle->enter()) handles_[size_++] = handle;
  }
  template <class Act>
  void release(Act act) noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      act(*handles_[i]);
      handles_[i]->leave();
    }
    size_ = 0;
  }

 private:
  std::array<io::IoHandle*, 64> handles_;
  std::size_t size_ = 0;
};

void poke(io::IoHandle& handle) noexcept { (void)handle.read().notify(); }

// 0: not in the list.
std::int64_t moment_of(const Progress& progress, LongestBy by) noexcept {
  const std::int64_t began = progress.began();
  return by == LongestBy::age || began == 0 ? began : std::abs(progress.waits_since());
}

}  // namespace

void Registry::add(Connection& connection, std::chrono::nanoseconds idle) noexcept {
  const detail::Guard guard(lock_);
  connection.look_at_ = later(connection.active_at(), idle);
  connection.round_ = round_;
  append(connection);
  ++added_;
}

void Registry::remove(Connection& connection) noexcept {
  const detail::Guard guard(lock_);
  unlink(connection);
  ++removed_;
}

std::int64_t Registry::poke_idle(std::chrono::nanoseconds idle) noexcept {
  const std::int64_t now = Deadline::now_nanoseconds();
  for (;;) {
    Batch due;
    std::int64_t next = later(now, idle);
    {
      const detail::Guard guard(lock_);
      while (first_ != nullptr && !due.full()) {
        Connection& connection = *first_;
        if (connection.look_at_ > now) break;
        const std::int64_t ends_at = later(connection.active_at(), idle);
        if (ends_at <= now) due.add(connection);
        connection.look_at_ = ends_at <= now ? later(now, idle) : ends_at;
        unlink(connection);
        append(connection);
      }
      if (first_ != nullptr && first_->look_at_ < next) next = first_->look_at_;
    }
    if (due.empty()) return next;
    due.release(poke);
  }
}

// Entries that come meanwhile are not reached.
template <class Act>
void Registry::for_each_stream(const Connection* spared, Act act) noexcept {
  lock_.lock();
  const std::uint32_t round = ++round_;
  lock_.unlock();
  for (;;) {
    Batch batch;
    bool all_seen = false;
    {
      const detail::Guard guard(lock_);
      while (!batch.full()) {
        if (first_ == nullptr || first_->round_ == round) {
          all_seen = true;
          break;
        }
        Connection& connection = *first_;
        connection.round_ = round;
        if (&connection != spared) batch.add(connection);
        unlink(connection);
        append(connection);
      }
    }
    batch.release(act);
    if (all_seen) return;
  }
}

void Registry::poke_all() noexcept { for_each_stream(nullptr, poke); }

void Registry::close_all(const Connection* spared) noexcept {
  for_each_stream(spared, [](io::IoHandle& handle) { (void)handle.close(); });
}

Connection* Registry::find_caller(std::uint64_t fiber) const noexcept {
  if (fiber == 0) return nullptr;  // A plain thread.
  const detail::Guard guard(lock_);
  Connection* connection = first_;
  while (connection != nullptr && connection->caller() != fiber) connection = connection->next_;
  return connection;
}

Counts Registry::counts() const noexcept {
  const detail::Guard guard(lock_);
  return {.added = added_, .present = added_ - removed_};
}

std::size_t Registry::find_longest(std::span<Busy> room, LongestBy by) const noexcept {
  std::size_t count = 0;
  const detail::Guard guard(lock_);
  for (const Connection* one = first_; one != nullptr; one = one->next_) {
    const std::int64_t since = moment_of(one->progress(), by);
    if (since == 0 || room.empty()) continue;
    if (count == room.size() && room[count - 1].since <= since) continue;
    std::size_t place = count < room.size() ? count++ : count - 1;
    for (; place > 0 && room[place - 1].since > since; --place) {
      room[place].connection = room[place - 1].connection;
      room[place].since = room[place - 1].since;
    }
    room[place].connection = one;
    room[place].since = since;
  }
  // The system is asked for few addresses only, and no connection can end meanwhile.
  for (Busy& busy : room.first(count)) {
    busy.progress = busy.connection->progress().read();
    busy.fiber = busy.connection->caller();
    busy.peer = busy.connection->peer();
  }
  return count;
}

void Registry::unlink(Connection& connection) noexcept {
  WEFT_INVARIANT(connection.previous_ != nullptr || first_ == &connection,
                 "Connection I2: it is in its registry until its end");
  (connection.previous_ != nullptr ? connection.previous_->next_ : first_) = connection.next_;
  (connection.next_ != nullptr ? connection.next_->previous_ : last_) = connection.previous_;
}

void Registry::append(Connection& connection) noexcept {
  connection.previous_ = last_;
  connection.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &connection;
  last_ = &connection;
}

}  // namespace weft::http
