// Records which fibers are workers, and of which pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/behalf_scope.hpp>
#include <weft/detail/local_node.hpp>
#include <weft/detail/pool_job.hpp>

namespace weft::pool {

class PoolCore;
class WorkerObjects;

// Registers the caller as a runner of tasks of `core` while this object lives: it is a node among
// the values of FiberLocals, on its stack. It costs nothing per task: a worker registers once, and
// only a task that is about to park reads it. A drain task registers the fiber of its parent's
// worker a second time. So does a caller, fiber or thread, that runs a task in submit(), which has
// no slot.
class Registration : private detail::LocalNode {
 public:
  enum class Slot : std::uint8_t { held, none };

  // `running` is where the worker keeps its current task. `outer` is the caller's own registration,
  // or that of a fiber that waits for the caller.
  Registration(PoolCore& core, const detail::PoolItem& running, Slot slot = Slot::held,
               Registration* outer = of_caller()) noexcept;
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  // Returns the newest registration of the caller, or of the task that waits for the loop whose
  // steps it runs; null if it runs no task of a pool.
  [[nodiscard]] static Registration* of_caller() noexcept;

  [[nodiscard]] PoolCore& core() const noexcept { return core_; }
  // Returns whether it has a slot now: not while it waits, or destroys the objects of its tasks.
  [[nodiscard]] bool has_slot() const noexcept {
    return slot_ == Slot::held && waits_ == 0 && !is_clearing();
  }
  // Returns whether there is a slot of its own to release, even while it waits.
  [[nodiscard]] bool may_release() const noexcept { return slot_ == Slot::held && !is_clearing(); }
  // Lends the slot to a task that the caller waits for, until end_lending(). Requires that the
  // caller is the worker, or another runner of a task in such a slot, and no step of a loop; that
  // it has only one slot; and that no step of a loop of the task waits.
  [[nodiscard]] bool try_lend_slot() noexcept;
  void end_lending() noexcept;
  // Surrounds a wait of the task, or of a step of its loops. The first such wait releases the
  // slots; the end of the last one parks until the task has them again. Waits may be nested, if a
  // caller runs a task in place of a worker while it waits itself.
  void begin_wait() noexcept;
  void end_wait() noexcept;
  // Surrounds a change of the slots by a drain task, while none of its tasks runs.
  void begin_absence() noexcept { ++waits_; }
  void end_absence() noexcept { --waits_; }
  // The worker has been retired.
  void give_slot_up() noexcept { slot_ = Slot::none; }
  // Called once by a worker: the objects of its tasks precede this node in the list of locals.
  void set_objects(WorkerObjects& objects) noexcept { objects_ = &objects; }
  [[nodiscard]] WorkerObjects make_objects() noexcept;
  // Returns whether the worker is destroying the objects of its tasks and still has its place in
  // the pool.
  [[nodiscard]] bool is_clearing() const noexcept;
  // Requires that. For a destructor that waits for the pool, whose tasks may need the place.
  void give_place_up() noexcept;
  // The number of slots of the task that it runs; for a drain task, of the task inside it.
  [[nodiscard]] std::size_t weight() const noexcept;
  // 0 if no task with a weight runs inside it.
  void set_weight_of_drain(std::size_t weight) noexcept { weight_of_drain_ = weight; }
  // The previous registration, such as that of the parent.
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
  // Both are guarded by the lock of the pool while a task runs, as steps of its loops are fibers of
  // their own. Unchecked: before and after the task there is no lock.
  unsigned waits_ = 0;
  Lent lent_ = Lent::no;
  std::size_t weight_of_drain_ = 0;
};

// Returns whether the caller runs a task of `core`: as its worker, in a drain task, or in submit().
[[nodiscard]] bool called_from_worker_of(const PoolCore* core) noexcept;

}  // namespace weft::pool
