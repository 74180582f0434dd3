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

// Identifies the tasks of one customer, file or host, by a number, a string, or any type with
// std::hash. A TaskKey stores only the hash. In the rare case that two keys have the same hash,
// tasks of one key wait for tasks of the other key.
// Context: plain value.
class TaskKey {
 public:
  // Makes an empty key. A task with an empty key waits for no other task.
  TaskKey() noexcept = default;
  // Hashes a string, a number, or a value of a type with std::hash. Equal keys have equal hashes.
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

  // Returns whether the key is not empty.
  [[nodiscard]] bool is_set() const noexcept { return is_set_; }
  // Returns the hash, or 0 if the key is empty.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 0;
  bool is_set_ = false;
};

// Holds the options of a task: pool.submit({.priority = Priority::high, .key = host}, fetch).
struct SubmitOptions {
  // Accepted tasks of a higher priority start first, but they overtake a task at most 16 times in a
  // row. Callers that wait for room keep their order, whatever their priority.
  Priority priority = Priority::normal;
  // Tasks with equal keys run one after another, in the order of acceptance. A task that waits for
  // its key uses a queue entry but no slot, and keeps its place in the queue. A task must not wait
  // for a task of its own key. OnFull::caller_runs works like OnFull::block for a task with a key.
  TaskKey key = {};
  // The number of slots that the task uses, at least 1. A queued task counts as that many tasks. A
  // task with a weight above the capacity is refused (Errc::too_heavy). No later task of the same
  // priority overtakes a task that does not fit yet. If the capacity shrinks below the weight, the
  // task runs alone. A task of a sub-pool also needs this many slots in each parent, where it
  // queues behind earlier tasks. A parent with fewer slots runs no other task at the same time.
  std::size_t weight = 1;
  // A stop request drops a task that has not begun, as PoolTask::cancel() does. A running task
  // receives the request through its token. The request also ends a wait for room
  // (Errc::cancelled), as does the Until of the call.
  std::stop_token stop = {};
  // A task that has not begun by this deadline never begins. PoolStats::cancelled counts the task
  // when it leaves the queue. Callers that wait for the task continue at the deadline, and get()
  // throws Errc::timed_out. The deadline also ends a wait for room.
  Deadline deadline = Deadline::never();
  // A task with a timeout must take a token, which reports a stop once the task has run this long.
  std::chrono::nanoseconds timeout = kNever;
};

}  // namespace weft
