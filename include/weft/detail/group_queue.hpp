// The tasks of a group at its limit that wait for other tasks of the group.
#pragma once

#include <cstddef>
#include <memory>
#include <weft/detail/local_scope.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/semaphore.hpp>

namespace weft::detail {

// A waiting task with everything it needs to run.
class QueuedTask {
 public:
  QueuedTask() noexcept = default;
  virtual ~QueuedTask() = default;
  QueuedTask(const QueuedTask&) = delete;
  QueuedTask& operator=(const QueuedTask&) = delete;
  // Called once, on the fiber of a runner.
  virtual void run() noexcept = 0;

 private:
  friend class GroupQueue;
  std::unique_ptr<QueuedTask> next_;
};

// If a task of a group starts another task at the limit, it must not wait for a place. It holds a
// place itself, and perhaps locks that other tasks need. The new task is queued here instead. When
// a task ends, its fiber runs the next queued task, in the same place, until the queue is empty.
// Running the new task inside the call that starts it was rejected. Such calls would nest until the
// stack overflows, and the new task might wait forever for a lock that its caller holds.
// Invariants
//   I1  runners_ counts the fibers that check the queue before they end.
//   I2  The queue is empty unless runners_ is above 0.
//   I3  A push tries to get a place under lock_, and a runner that has given its place back checks
//       again under lock_. So no task waits while a place is free, except for a moment. Unchecked:
//       several such moments may overlap.
class GroupQueue {
 public:
  // The result of a push.
  enum class Push : unsigned char {
    queued,     // A runner will run the task.
    has_place,  // A place has become free and now belongs to the caller; the task is not queued.
    no_runner,  // The task is not queued.
  };

  // If the caller runs a task of another group, the new group's tasks also count as that group's.
  explicit GroupQueue(Semaphore& places) noexcept;
  GroupQueue(const GroupQueue&) = delete;
  GroupQueue& operator=(const GroupQueue&) = delete;

  // Returns whether the caller is a task of the group, or of a group that such a task has made, and
  // so on.
  [[nodiscard]] bool is_around_caller() const noexcept;
  // Takes the task only if it is queued.
  [[nodiscard]] Push push(std::unique_ptr<QueuedTask>& task) noexcept;
  // Called by a fiber that has a place: it is a runner until next() returns null.
  void add_runner() noexcept;
  // Called by a runner; returns the task to run next. Null: no task is queued, and the runner's
  // place has been given back.
  [[nodiscard]] std::unique_ptr<QueuedTask> next() noexcept;

 private:
  [[nodiscard]] std::unique_ptr<QueuedTask> pop() noexcept WEFT_REQUIRES(lock_);

  Semaphore& places_;
  const GroupQueue* const enclosing_;
  SpinLock lock_;
  std::size_t runners_ WEFT_GUARDED_BY(lock_) = 0;
  std::unique_ptr<QueuedTask> first_ WEFT_GUARDED_BY(lock_);
  QueuedTask* last_ WEFT_GUARDED_BY(lock_) = nullptr;  // Valid only while first_ is not null.
};

// While it lives, the caller runs a task of the group.
class GroupScope : private LocalScope {
 public:
  explicit GroupScope(const GroupQueue& of_group) noexcept;
  // Returns the queue of the innermost scope; null if the caller runs no task of a group.
  [[nodiscard]] static const GroupQueue* current() noexcept;

 private:
  const GroupQueue& of_group_;
};

}  // namespace weft::detail
