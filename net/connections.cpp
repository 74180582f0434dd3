#include "net/connections.hpp"

#include <algorithm>
#include <exception>
#include <weft/deadline.hpp>
#include <weft/detail/invariant.hpp>
#include <weft/go.hpp>

#include "io/poller.hpp"

namespace weft::net {

using detail::relaxed;

namespace {

void poke(io::IoHandle& handle) noexcept { (void)handle.read().notify(); }

}  // namespace

bool ConnectionRecord::wait_for_bytes(io::IoHandle* handle, detail::Task&& serve) noexcept {
  try {
    fiber_ = detail::spawn_parked(std::move(serve), detail::WaitReason::readable);
  } catch (const std::exception&) {
    return false;
  }
  // The direction exists as long as the stream owns its socket, even if the socket is closed.
  if (handle != nullptr) {
    handle->read().add_watch(*this);
  } else {
    detail::wake(fiber_);
  }
  return true;
}

detail::Waker ConnectionRecord::start_fiber(IoWatch& watch) noexcept {
  return static_cast<ConnectionRecord&>(watch).fiber_;
}

// Holds streams that are collected under the lock and used without it. Each stream counts as a call
// in progress, so its descriptor stays the same even if the connection ends.
class Connections::Batch {
 public:
  [[nodiscard]] bool full() const noexcept { return size_ == handles_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  void add(io::IoHandle* handle) noexcept {
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

void Connections::Part::unlink(ConnectionRecord& connection) noexcept {
  List& list = lists[connection.delay_];
  WEFT_INVARIANT(connection.previous_ != nullptr || list.first == &connection,
                 "ConnectionRecord I2: it is in a list of its server until its end");
  (connection.previous_ != nullptr ? connection.previous_->next_ : list.first) = connection.next_;
  (connection.next_ != nullptr ? connection.next_->previous_ : list.last) = connection.previous_;
}

void Connections::Part::append(ConnectionRecord& connection) noexcept {
  List& list = lists[connection.delay_];
  connection.previous_ = list.last;
  connection.next_ = nullptr;
  (list.last != nullptr ? list.last->next_ : list.first) = &connection;
  list.last = &connection;
}

Connections::Connections(HandleOf handle_of, std::chrono::nanoseconds idle) noexcept
    : handle_of_(handle_of), idle_(std::max(idle, std::chrono::nanoseconds(1))) {}

void Connections::add(ConnectionRecord& connection) noexcept {
  open_.add();
  others_.add();
  connection.part_ = static_cast<std::uint8_t>(next_part_.fetch_add(1, relaxed) % parts_.size());
  // A busy connection is checked again as if its idle time began now, because that time begins
  // later.
  const std::int64_t since = std::min(connection.active_at(), Deadline::now_nanoseconds());
  Part& part = parts_[connection.part_];
  const detail::Guard guard(part.lock);
  connection.look_at_ = later(since, idle_);
  connection.round_ = part.round;
  part.append(connection);
  ++part.added;
}

void Connections::remove(ConnectionRecord& connection) noexcept {
  {
    Part& part = parts_[connection.part_];
    const detail::Guard guard(part.lock);
    part.unlink(connection);
    ++part.removed;
    if (connection.is_excused_) return;
  }
  others_.done();
}

void Connections::start_keeper() {
  if (idle_ == kNever || keeper_started_.exchange(true, relaxed)) return;
  try {
    keeper_.go([this] { keep(); });
  } catch (...) {
    keeper_started_.store(false, relaxed);  // The next call tries again.
    throw;
  }
}

void Connections::keep() noexcept {
  std::int64_t next = 0;
  while (!ended_.wait_until(Deadline::at_nanoseconds(next))) {
    // One round also checks the connections whose time ends shortly afterwards.
    next = later(poke_idle(), std::chrono::milliseconds(5));
  }
}

void Connections::end_keeper() noexcept {
  ended_.set();
  keeper_.wait();
}

bool Connections::has_been_idle_for_long(const ConnectionRecord& connection) const noexcept {
  return idle_ != kNever && later(connection.active_at(), idle_) <= Deadline::now_nanoseconds();
}

std::chrono::nanoseconds Connections::delay(std::uint8_t number) const noexcept {
  return std::chrono::nanoseconds(std::max<std::int64_t>(idle_.count() >> number, 1));
}

std::uint8_t Connections::longest_delay(std::chrono::nanoseconds most) const noexcept {
  std::uint8_t number = 0;
  while (number < kDelays - 1 && delay(number) > most) ++number;
  return number;
}

// Checks a connection whose check is due, and moves it to the list of its next check.
void Connections::look(Part& part, ConnectionRecord& connection, std::int64_t now,
                       Batch& due) noexcept {
  const std::int64_t ends_at = later(std::min(connection.active_at(), now), idle_);
  part.unlink(connection);
  if (ends_at <= now) {
    due.add(handle_of_(connection));
    connection.delay_ = 0;
  } else {
    connection.delay_ = longest_delay(std::chrono::nanoseconds(ends_at - now));
  }
  connection.look_at_ = later(now, delay(connection.delay_));
  part.append(connection);
}

// Both overloads return the time at which the next check is due.
std::int64_t Connections::poke_idle() noexcept {
  const detail::Guard guard(walk_);
  const std::int64_t now = Deadline::now_nanoseconds();
  std::int64_t next = later(now, idle_);
  for (Part& part : parts_) next = std::min(next, poke_idle(part, now));
  return next;
}

std::int64_t Connections::poke_idle(Part& part, std::int64_t now) noexcept {
  for (;;) {
    Batch due;
    std::int64_t next = later(now, idle_);
    {
      const detail::Guard guard(part.lock);
      for (List& list : part.lists) {
        while (list.first != nullptr && list.first->look_at_ <= now && !due.full()) {
          look(part, *list.first, now, due);
        }
        if (list.first != nullptr) next = std::min(next, list.first->look_at_);
      }
    }
    if (due.empty()) return next;
    due.release(poke);
  }
}

// Calls `take` with each connection under the lock. If `take` returns true, calls `act` with the
// connection's handle without the lock.
template <class Take, class Act>
void Connections::for_each_stream(Take take, Act act) noexcept {
  const detail::Guard walk(walk_);
  for (Part& part : parts_) {
    part.lock.lock();
    const std::uint32_t round = ++part.round;
    part.lock.unlock();
    for (bool all_seen = false; !all_seen;) {
      Batch batch;
      {
        const detail::Guard guard(part.lock);
        for (List& list : part.lists) {
          while (list.first != nullptr && list.first->round_ != round && !batch.full()) {
            ConnectionRecord& connection = *list.first;
            connection.round_ = round;
            part.unlink(connection);
            part.append(connection);
            if (take(connection)) batch.add(handle_of_(connection));
          }
        }
        all_seen = !batch.full();
      }
      batch.release(act);
    }
  }
}

void Connections::poke_all() noexcept {
  for_each_stream([](const ConnectionRecord&) { return true; }, poke);
}

std::size_t Connections::close_all() noexcept { return close(false); }

std::size_t Connections::close_others() noexcept { return close(true); }

std::size_t Connections::close(bool spares_excused) noexcept {
  std::size_t closed = 0;
  for_each_stream(
      [&closed, spares_excused](ConnectionRecord& connection) {
        if (spares_excused && connection.is_excused_) return false;
        if (!std::exchange(connection.is_closed_, true)) ++closed;
        return true;
      },
      [](io::IoHandle& handle) { (void)handle.close(); });
  return closed;
}

ConnectionRecord* Connections::find_caller(std::uint64_t fiber) noexcept {
  if (fiber == 0) return nullptr;  // A plain thread.
  for (Part& part : parts_) {
    const detail::Guard guard(part.lock);
    for (const List& list : part.lists) {
      ConnectionRecord* connection = list.first;
      while (connection != nullptr && connection->caller() != fiber) connection = connection->next_;
      if (connection != nullptr) return connection;
    }
  }
  return nullptr;
}

void Connections::excuse(ConnectionRecord& connection) noexcept {
  {
    const detail::Guard guard(parts_[connection.part_].lock);
    if (std::exchange(connection.is_excused_, true)) return;
  }
  others_.done();
}

Connections::Counts Connections::counts() const noexcept {
  Counts counts;
  for (const Part& part : parts_) {
    const detail::Guard guard(part.lock);
    counts.added += part.added;
    counts.present += part.added - part.removed;
  }
  return counts;
}

}  // namespace weft::net
