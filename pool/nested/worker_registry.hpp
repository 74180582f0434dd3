// Records which fibers are workers, and of which pools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/behalf_scope.hpp>
#include <weft/detail/local_node.hpp>
#include <weft/detail/pool_job.hpp>

namespace weft::pool {

class PoolCore;
class WorkerObjects;

// While this object exists, the caller is registered as a worker of `core`. The object is on the
// caller's stack, as a node in the list of the caller's FiberLocal values. A registration costs
// nothing per task, because a worker registers once. Only calls that may park, and submissions that
// need more than a push, read the registration. The fiber of a drain task is a worker of the
// parent, and is also registered for the sub-pool. A fiber or thread that runs a task in submit()
// registers without a slot.
class Registration : private detail::LocalNode {
 public:
  enum class Slot : std::uint8_t { held, none };

  // `running` contains the worker's current task. `outer` is the caller's previous registration, or
  // the registration of a fiber that waits for the caller.
  Registration(PoolCore& core, const detail::PoolItem& running, Slot slot = Slot::held,
               Registration* outer = of_caller()) noexcept;
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  // Returns the newest registration of the caller. For a fiber of a parallel loop, returns the
  // registration of the task that waits for the loop. Null if the caller runs no task of a pool.
  [[nodiscard]] static Registration* of_caller() noexcept;

  [[nodiscard]] PoolCore& core() const noexcept { return core_; }
  // Returns whether the registered caller has a slot now. It has none while it waits, or while it
  // destroys its tasks' FiberLocal values.
  [[nodiscard]] bool has_slot() const noexcept {
    return slot_ == Slot::held && waits_ == 0 && !is_clearing();
  }
  // Returns whether the caller has a slot, or will get it back after a wait.
  [[nodiscard]] bool may_release() const noexcept { return slot_ == Slot::held && !is_clearing(); }
  // Lends the slot to a task for which the caller waits, until end_lending(). Returns false if the
  // caller is a fiber of one of the task's parallel loops, or if such a fiber is waiting. Also
  // returns false if the task has more than one slot, or currently has none.
  [[nodiscard]] bool try_lend_slot() noexcept;
  void end_lending() noexcept;
  // A BlockingScope calls begin_wait() before the task, or a fiber of one of its parallel loops,
  // waits. It calls end_wait() after the wait. The first begin_wait() releases the task's slots.
  // The last end_wait() parks until the task has the slots again. Waits may be nested: a waiting
  // caller may run a task in place of a worker, and this task may wait, too.
  void begin_wait() noexcept;
  void end_wait() noexcept;
  // A drain task calls begin_absence() before it exchanges its slot for the slots that a heavy task
  // needs, and calls end_absence() afterwards.
  void begin_absence() noexcept { ++waits_; }
  void end_absence() noexcept { --waits_; }
  // Called when the worker has been retired.
  void give_slot_up() noexcept { slot_ = Slot::none; }
  // Each worker calls this once, with the record of the FiberLocal values that its tasks create.
  void set_objects(WorkerObjects& objects) noexcept { objects_ = &objects; }
  [[nodiscard]] WorkerObjects make_objects() noexcept;
  // Returns whether the worker is destroying its tasks' FiberLocal values and the pool still counts
  // it as a live worker.
  [[nodiscard]] bool is_clearing() const noexcept;
  // Requires that is_clearing() returns true. Called when the destructor of a FiberLocal waits for
  // the pool. The pool then no longer counts this worker, so another worker can take its place.
  void give_place_up() noexcept;
  // Returns how many slots the running task needs. A drain task needs as many as the task it runs.
  [[nodiscard]] std::size_t weight() const noexcept;
  // A `weight` of 0 means that the drain task runs no task that needs more than one slot.
  void set_weight_of_drain(std::size_t weight) noexcept { weight_of_drain_ = weight; }
  // Returns the previous registration, for example the registration at the parent pool.
  [[nodiscard]] Registration* outer() const noexcept { return outer_; }

 private:
  enum class Lent : std::uint8_t { no, yes, until_reacquired };

  [[nodiscard]] bool may_lend_slot() const noexcept;
  void release_slots() noexcept;

  PoolCore& core_;
  const detail::PoolItem& running_;
  Slot slot_;
  Registration* const outer_;
  WorkerObjects* objects_ = nullptr;
  // While a task runs, the pool's lock guards waits_ and lent_, because the task's parallel loops
  // run in several fibers. They have no lock annotation, because between tasks the worker uses them
  // without the lock.
  unsigned waits_ = 0;
  Lent lent_ = Lent::no;
  std::size_t weight_of_drain_ = 0;
};

// Returns whether the caller runs a task of `core`: on a worker, in a drain task, or in submit().
[[nodiscard]] bool called_from_worker_of(const PoolCore* core) noexcept;

}  // namespace weft::pool
