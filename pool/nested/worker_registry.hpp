// Which fibers are workers, and of which pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/behalf_scope.hpp>
#include <weft/detail/local_node.hpp>
#include <weft/detail/pool_job.hpp>

namespace weft::pool {

class PoolCore;
class WorkerObjects;

// Registers the caller, for as long as this object lives, as one who runs tasks of `core`: among
// the values of FiberLocals, on its stack. It costs nothing per task: a worker registers once, and
// only a task that is about to park asks. A drain task of a sub-pool registers the fiber of its
// parent's worker a second time; and so does a caller, fiber or thread, that runs a task in
// submit(), which has no slot.
class Registration : private detail::LocalNode {
 public:
  enum class Slot : std::uint8_t { held, none };

  // `running` is where the worker keeps the task that it runs. `outer` is the caller's own, or that
  // of one that waits for the caller.
  Registration(PoolCore& core, const detail::PoolItem& running, Slot slot = Slot::held,
               Registration* outer = of_caller()) noexcept;
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  // The newest of the caller, or of the task that waits for the loop whose steps it runs; null if
  // it runs no task of a pool.
  [[nodiscard]] static Registration* of_caller() noexcept;

  [[nodiscard]] PoolCore& core() const noexcept { return core_; }
  // Returns whether it has one now: not while it waits, or destroys what its tasks have left.
  [[nodiscard]] bool has_slot() const noexcept {
    return slot_ == Slot::held && waits_ == 0 && !is_clearing();
  }
  // Returns whether there is a slot to release: its own, also while it waits.
  [[nodiscard]] bool may_release() const noexcept { return slot_ == Slot::held && !is_clearing(); }
  // Lends the slot to a task that the caller waits for, until end_lending(). Only if the caller is
  // the worker, or another that runs a task in such a slot, and no step of a loop; if one slot is
  // all it has; and if no step of a loop of the task waits.
  [[nodiscard]] bool try_lend_slot() noexcept;
  void end_lending() noexcept;
  // Around a wait of the task, or of a step of its loops. The slots are released from the first
  // such wait on; the end of the last one parks until the task has them again. Waits may be nested,
  // where a caller runs a task in place of a worker while it waits itself.
  void begin_wait() noexcept;
  void end_wait() noexcept;
  // Around a change of the slots by a drain task, while no task of it runs.
  void begin_absence() noexcept { ++waits_; }
  void end_absence() noexcept { --waits_; }
  // The worker has been retired.
  void give_slot_up() noexcept { slot_ = Slot::none; }
  // Once, of a worker: what its tasks leave stands before this in the list of locals.
  void set_objects(WorkerObjects& objects) noexcept { objects_ = &objects; }
  [[nodiscard]] WorkerObjects make_objects() noexcept;
  // Returns whether the worker destroys what its tasks have left, and still has its place in the
  // pool.
  [[nodiscard]] bool is_clearing() const noexcept;
  // Requires that. For a destructor that waits for the pool, whose tasks may need the place.
  void give_place_up() noexcept;
  // The slots of the task that it runs; a drain task has as many as the task in it.
  [[nodiscard]] std::size_t weight() const noexcept;
  // 0: it has no task with a weight in it.
  void set_weight_of_drain(std::size_t weight) noexcept { weight_of_drain_ = weight; }
  // The one before it, as of the parent.
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
  unsigned waits_ = 0;    // Both change under the lock of the pool while a task runs: steps of
  Lent lent_ = Lent::no;  // its loops are fibers of their own.
  std::size_t weight_of_drain_ = 0;
};

// Returns whether the caller runs a task of `core`: as its worker, in a drain task, or in submit().
[[nodiscard]] bool called_from_worker_of(const PoolCore* core) noexcept;

}  // namespace weft::pool
