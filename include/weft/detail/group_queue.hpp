// While a group is at its limit, queues the tasks that tasks of this or of nested groups start.
#pragma once

#include <cstddef>
#include <memory>
#include <weft/detail/local_scope.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/semaphore.hpp>

namespace weft::detail {

// Holds a queued task, with everything that the task needs to run.
class QueuedTask {
 public:
  QueuedTask() noexcept = default;
  virtual ~QueuedTask() = default;
  QueuedTask(const QueuedTask&) = delete;
  QueuedTask& operator=(const QueuedTask&) = delete;
  // Runs the task. A runner calls run() once; see GroupQueue.
  virtual void run() noexcept = 0;

 private:
  friend class GroupQueue;
  std::unique_ptr<QueuedTask> next_;
};

// A task may start a new task while its group is at the limit. It must not wait until another task
// ends, because it may hold locks that other tasks need. The new task is therefore added to this
// queue. Each fiber of the group is a runner: when its task ends, it keeps its place and runs
// queued tasks until the queue is empty. The call that starts the new task must not run it, because
// such calls could nest until the stack overflows. The new task could also wait forever for a lock
// that its caller holds.
// Invariants
//   I1  runners_ counts the fibers that check the queue before they end.
//   I2  The queue is empty unless runners_ is above 0.
//   I3  A push tries to get a place under lock_, and a runner that has released its place checks
//       the queue again under lock_. Thus, while a place is free, a queued task waits only briefly.
//       Not asserted, because no field records how long a task has waited.
class GroupQueue {
 public:
  // Reports the result of a push.
  enum class Push : unsigned char {
    queued,     // A runner will run the task.
    has_place,  // A place has become free and now belongs to the caller; the task is not queued.
    no_runner,  // The queue has no runner, so the task is not queued.
  };

  // If a task of another group constructs this queue, the queue's group is nested in that group.
  explicit GroupQueue(Semaphore& places) noexcept;
  GroupQueue(const GroupQueue&) = delete;
  GroupQueue& operator=(const GroupQueue&) = delete;

  // Returns whether the caller is a task of this group, or of a group nested in it at any depth.
  [[nodiscard]] bool is_around_caller() const noexcept;
  // Tries to queue `task`. Moves the task out of `task` only if the result is Push::queued.
  [[nodiscard]] Push push(std::unique_ptr<QueuedTask>& task) noexcept;
  // A fiber that has a place calls add_runner(), and is then a runner until next() returns null.
  void add_runner() noexcept;
  // Returns the task that the calling runner must run next. If no task is queued, releases the
  // runner's place and returns null.
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

// While this object exists, the caller runs a task of the group.
class GroupScope : private LocalScope {
 public:
  explicit GroupScope(const GroupQueue& of_group) noexcept;
  // Returns the queue of the innermost scope; null if the caller runs no task of a group.
  [[nodiscard]] static const GroupQueue* current() noexcept;

 private:
  const GroupQueue& of_group_;
};

}  // namespace weft::detail
