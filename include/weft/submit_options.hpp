// The options of one task in a pool.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <weft/deadline.hpp>

namespace weft {

enum class Priority : std::uint8_t { high, normal, low };

// The mark that the tasks of one customer, file or host have in common: a number, a string, or
// anything that std::hash knows. It is known by its hash: if two keys have the same, which is rare,
// their tasks wait for one another, and that is all. A plain value.
class TaskKey {
 public:
  // No key: the task waits for no other.
  TaskKey() noexcept = default;
  // Of a value: texts, numbers, and what std::hash knows. Keys that are equal have equal hashes.
  template <class T>
  requires(!std::same_as<T, TaskKey> && (std::convertible_to<const T&, std::string_view> ||
                                         std::is_default_constructible_v<std::hash<T>>))
      TaskKey(const T& value)  // NOLINT(google-explicit-constructor): a value is a key.
      : is_set_(true) {
    if constexpr (std::convertible_to<const T&, std::string_view>) {
      hash_ = std::hash<std::string_view>()(value);
    } else {
      hash_ = std::hash<T>()(value);
    }
  }

  // Returns whether there is a key.
  [[nodiscard]] bool is_set() const noexcept { return is_set_; }
  // By which it is known; 0 without a key.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 0;
  bool is_set_ = false;
};

// pool.submit({.priority = Priority::high, .key = host}, fetch);
// A task that asks for nothing costs least without any of this.
struct SubmitOptions {
  // Among the tasks that have been accepted, tasks of a higher priority start first; but no task is
  // passed over more than 16 times in a row. Callers that are blocked in submit keep their order.
  Priority priority = Priority::normal;
  // Tasks with equal keys run one after the other, in the order in which they were accepted. One
  // that has to wait takes a place in the queue and no slot, and then starts as if no key had
  // held it up. A task must not wait for another of its own key, which waits for its end. With
  // OnFull::caller_runs a task with a key waits for room instead.
  TaskKey key = {};
  // The slots that the task takes, and the room that it needs to be accepted: at least 1; more than
  // the capacity is refused with Errc::too_heavy. Tasks behind one that does not fit yet wait
  // too, so it is never passed over. If the capacity shrinks below it, the task runs alone. In a
  // sub-pool it takes as many slots of each parent, too, and waits for them after earlier waiters;
  // a parent with fewer runs it alone.
  std::size_t weight = 1;
  // A request drops the task if it has not begun, as PoolTask::cancel() does; else it is passed on
  // to the task's own token. It also ends a wait for room (Errc::cancelled), as a stop request of
  // the call's own Until does: whichever comes first.
  std::stop_token stop = {};
  // A task that has not begun by then never will. It is counted as cancelled when its turn comes;
  // its waiters go on at the deadline, and get() throws Errc::timed_out. It also ends a wait for
  // room.
  Deadline deadline = Deadline::never();
  // A task that has run for so long is asked to stop; it must take a std::stop_token.
  std::chrono::nanoseconds timeout = kNever;
};

}  // namespace weft
