// The connections of a server.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/detail/guard.hpp>
#include <weft/detail/io_watch.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/task.hpp>
#include <weft/detail/waist.hpp>
#include <weft/event.hpp>
#include <weft/mutex.hpp>
#include <weft/until.hpp>
#include <weft/wait_group.hpp>

#include "base/cache_line.hpp"

namespace weft::io {
class IoHandle;
}

namespace weft::net {

// Returns the time `by` later, or the latest possible time if that would overflow.
[[nodiscard]] constexpr std::int64_t later(std::int64_t moment,
                                           std::chrono::nanoseconds by) noexcept {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  return by.count() > kLast - moment ? kLast : moment + by.count();
}

class Connections;

// The state that a connection of any server has: its links in the lists of connections. While it is
// idle, it also has a watch for bytes and an unstarted fiber, which is a record without a stack.
// Invariants
//   I1  Either one fiber serves the connection, or its watch waits, or the watch has been notified
//       and its fiber is about to run. So one caller at a time uses the record, except for its
//       links. Not asserted, because an assertion needs the views of both the fiber and the
//       direction.
//   I2  It is in a list of its server from add() to remove(), which that fiber calls.
class ConnectionRecord : private detail::IoWatch {
 public:
  // The activity of a connection whose idle time has not begun.
  static constexpr std::int64_t kBusy = std::numeric_limits<std::int64_t>::max();

  explicit ConnectionRecord(std::int64_t active_at) noexcept
      : IoWatch{&ConnectionRecord::start_fiber}, active_at_(active_at) {}
  ConnectionRecord(const ConnectionRecord&) = delete;
  ConnectionRecord& operator=(const ConnectionRecord&) = delete;

  // Never parks. The connection then waits until bytes arrive, the stream ends, or its server pokes
  // it. Then a new fiber runs `serve`. The caller must not touch the connection any more. Returns
  // false if no fiber is available; then the caller keeps the connection. A connection without a
  // handle is served at once.
  [[nodiscard]] bool wait_for_bytes(io::IoHandle* handle, detail::Task&& serve) noexcept;

  // When the idle time began, by Deadline's clock. The serving fiber writes it, and the keeper
  // reads it. Relaxed: a slightly stale time suffices.
  void note_activity(std::int64_t now) noexcept { active_at_.store(now, detail::relaxed); }
  [[nodiscard]] std::int64_t active_at() const noexcept { return active_at_.load(detail::relaxed); }

  // The number of the fiber that may call the program's callables, such as handlers; 0: none. That
  // fiber writes it; a shutdown reads it, and compares it with its own number. Relaxed: a fiber
  // sees its own writes, and no two fibers have the same number.
  void set_caller(std::uint64_t fiber) noexcept { caller_.store(fiber, detail::relaxed); }
  [[nodiscard]] std::uint64_t caller() const noexcept { return caller_.load(detail::relaxed); }

 protected:
  ~ConnectionRecord() = default;

 private:
  friend class Connections;
  static detail::Waker start_fiber(IoWatch& watch) noexcept;

  detail::Waker fiber_;
  detail::Atomic<std::int64_t> active_at_;
  detail::Atomic<std::uint64_t> caller_{0};
  std::uint8_t part_ = 0;
  // The lock of the connection's part guards all members below. Not annotated, because the part is
  // found by a number.
  bool is_excused_ = false;
  bool is_closed_ = false;
  std::uint8_t delay_ = 0;
  std::uint32_t round_ = 0;
  std::int64_t look_at_ = 0;
  ConnectionRecord* previous_ = nullptr;
  ConnectionRecord* next_ = nullptr;
};

// The connections of a server: lists that shutdowns walk, the limit of idle time, and the waits for
// the connections' ends. The lists are in several parts, so that connections that come and go
// seldom share a lock.
// A connection that is used stays in its list. The next check finds that the connection was used,
// and how much of its idle time is left. The check after that comes when at least half of that time
// has passed, but seldom all of it. A part has a list for each such delay, which is the idle time
// divided by a power of two. So each list is sorted by the next checks, and few checks are exactly
// at the end of an idle time.
class Connections {
 public:
  // Returns the handle of a connection's stream, or null if another owner has the stream. Called
  // under the lock of the connection's part.
  using HandleOf = io::IoHandle* (*)(ConnectionRecord& connection) noexcept;
  // The counts at one moment.
  struct Counts {
    std::uint64_t added = 0;  // Since the start.
    std::uint64_t present = 0;
  };

  // `idle` is how long a connection may be idle.
  Connections(HandleOf handle_of, std::chrono::nanoseconds idle) noexcept;

  void add(ConnectionRecord& connection) noexcept;
  // The fiber that serves the connection, or gives it up, calls remove() before it deletes the
  // connection, and release() afterwards.
  void remove(ConnectionRecord& connection) noexcept;
  // wait_for_all() waits for the matching release(), which may be the caller's last access.
  void hold() noexcept { open_.add(); }
  void release() noexcept { open_.done(); }
  // Returns the lock under which the connection's handle is read.
  [[nodiscard]] detail::SpinLock& lock_of(ConnectionRecord& connection) noexcept {
    return parts_[connection.part_].lock;
  }

  // Starts a fiber that pokes connections whose idle time has ended. Does nothing if the idle time
  // is unlimited or the fiber runs already. Throws what go() throws.
  void start_keeper();
  // Ends that fiber, if it runs, and waits for it.
  void end_keeper() noexcept;
  [[nodiscard]] bool has_been_idle_for_long(const ConnectionRecord& connection) const noexcept;

  // Makes all connections check for bytes once, and notice that the server ends. Connections that
  // arrive meanwhile are not reached.
  void poke_all() noexcept;
  // Both functions close streams; the second spares excused connections. The fibers that serve the
  // closed connections, now or later, end them. Returns how many connections were closed for the
  // first time.
  std::size_t close_all() noexcept;
  std::size_t close_others() noexcept;

  // Returns the connection whose handler runs in this fiber, or null.
  [[nodiscard]] ConnectionRecord* find_caller(std::uint64_t fiber) noexcept;
  // Records that the caller, which serves the connection, shuts the server down: no shutdown in a
  // handler waits for this connection.
  void excuse(ConnectionRecord& connection) noexcept;
  // The next two functions wait until there are no connections. wait_for_others() ignores excused
  // connections. Both functions return false if `until` ended the wait.
  [[nodiscard]] bool wait_for_all(const Until& until) noexcept { return open_.wait_until(until); }
  [[nodiscard]] bool wait_for_others(const Until& until) noexcept {
    return others_.wait_until(until);
  }

  [[nodiscard]] Counts counts() const noexcept;
  // Calls `each` with all connections, part by part, and `end_part` after each part. Both run under
  // the lock of the part, so no connection ends meanwhile.
  template <class Each, class EndPart>
  void visit(Each each, EndPart end_part) const {
    for (const Part& part : parts_) {
      const detail::Guard guard(part.lock);
      for (const List& list : part.lists) {
        for (const ConnectionRecord* one = list.first; one != nullptr; one = one->next_) each(*one);
      }
      end_part();
    }
  }

 private:
  // The shortest delay is a few milliseconds for an idle time of an hour.
  static constexpr std::uint8_t kDelays = 20;

  class Batch;
  struct List {
    ConnectionRecord* first = nullptr;
    ConnectionRecord* last = nullptr;
  };
  struct alignas(base::kCacheLine) Part {
    mutable detail::SpinLock lock;
    std::array<List, kDelays> lists WEFT_GUARDED_BY(lock);
    std::uint64_t added WEFT_GUARDED_BY(lock) = 0;
    std::uint64_t removed WEFT_GUARDED_BY(lock) = 0;
    std::uint32_t round WEFT_GUARDED_BY(lock) = 0;

    void unlink(ConnectionRecord& connection) noexcept WEFT_REQUIRES(lock);
    void append(ConnectionRecord& connection) noexcept WEFT_REQUIRES(lock);
  };

  template <class Take, class Act>
  void for_each_stream(Take take, Act act) noexcept;
  std::size_t close(bool spares_excused) noexcept;
  [[nodiscard]] std::chrono::nanoseconds delay(std::uint8_t number) const noexcept;
  [[nodiscard]] std::uint8_t longest_delay(std::chrono::nanoseconds most) const noexcept;
  void look(Part& part, ConnectionRecord& connection, std::int64_t now, Batch& due) noexcept
      WEFT_REQUIRES(part.lock);
  [[nodiscard]] std::int64_t poke_idle() noexcept;
  [[nodiscard]] std::int64_t poke_idle(Part& part, std::int64_t now) noexcept;
  void keep() noexcept;

  const HandleOf handle_of_;
  const std::chrono::nanoseconds idle_;
  // Held while connections are moved, so that a walk finds unvisited connections at the front.
  Mutex walk_;
  std::array<Part, 16> parts_;
  // Relaxed: the number only spreads the connections.
  detail::Atomic<std::uint32_t> next_part_{0};
  WaitGroup open_;
  WaitGroup others_;  // Connections whose handlers are not in shutdown().
  WaitGroup keeper_;
  Event ended_;  // Ends the keeper.
  // Relaxed: exactly one of several calls must win; the value publishes nothing.
  detail::Atomic<bool> keeper_started_{false};
};

}  // namespace weft::net
