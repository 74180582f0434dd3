// Pools inside pools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <system_error>
#include <weft/detail/atomic.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/thread_annotations.hpp>

#include "pool/core/nesting.hpp"
#include "pool/core/waiters.hpp"

namespace weft::pool {

class PoolCore;

// SubPool is the parent's record of a sub-pool. The sub-pool's drain tasks refer to this record.
// Drain tasks may stay in the parent's queue for a long time, so a sub-pool that ends does not wait
// for them. A drain task that runs later gets null from enter(). A SubPool can be in the parent's
// wait queue, like a blocked submitter. However, it has no parked caller that must be woken. All
// pools with the same root share one lock, which guards all members except the reference count.
// Order
//   [sub-pool-refs]  release() decrements references_ (acq_rel) -> the last release() decrements it
//                    (acq_rel): all other users have finished with the object before it is deleted.
class SubPool : public Submitter {
 public:
  SubPool(PoolCore& its_core, PoolCore& its_parent) noexcept : core(its_core), parent(its_parent) {}
  SubPool(const SubPool&) = delete;
  SubPool& operator=(const SubPool&) = delete;

  // Returns the sub-pool's core, and counts the caller as its user until the caller calls leave().
  // Returns null if the sub-pool has ended.
  [[nodiscard]] PoolCore* enter() noexcept;
  // Relaxed: the caller already has a reference, so no other thread can delete the object now.
  void keep() noexcept { references_.fetch_add(1, detail::relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, detail::acq_rel) == 1) delete this;  // [sub-pool-refs]
  }

  // The sub-pool. It exists until has_ended is true and all callers that entered the sub-pool have
  // left it.
  PoolCore& core;
  PoolCore& parent;
  // The drain task that the parent will accept after the tasks of earlier submitters. If the
  // sub-pool leaves the parent's wait queue before then, it keeps this task for its next wait.
  detail::PoolItem drain;
  bool has_ended = false;
  SubPool* next_sub_pool = nullptr;
  SubPool* previous_sub_pool = nullptr;

 private:
  ~SubPool() = default;

  detail::Atomic<std::uint32_t> references_{1};
};

// A task of the parent that runs tasks of a sub-pool. The parent completes a drain task, like every
// job, when it frees the task's slot. At that moment, the drain task also ends the waits for the
// last job that it ran. The sub-pool then no longer counts the drain task as a user. The sub-pool
// counts a drain task as a starting worker as soon as the parent accepts it. If the drain task is
// dropped before it runs, the sub-pool no longer counts it.
class DrainTask final : public detail::PoolJob {
 public:
  explicit DrainTask(SubPool& sub_pool) noexcept;
  void drain_accepted() noexcept override;
  [[nodiscard]] Settled settle(Outcome outcome) noexcept override;

 private:
  ~DrainTask() override;
  bool invoke() noexcept override;
  void drop_callable() noexcept override;
  void request_stop() noexcept override {}
  void fail(std::exception_ptr /*exception*/) noexcept override {}

  SubPool& sub_pool_;
  bool is_accepted_ = false;
  PoolCore* entered_ = nullptr;
  PoolJob* finished_ = nullptr;  // The last job that this task ran. Its waiters are still waiting.
  Outcome outcome_ = Outcome::completed;
};

// Keeps the record that represents a pool at its parent, and the list of the pool's sub-pools.
// Clang's thread safety analysis treats the shared lock as a different lock in each pool, so it
// cannot check calls between pools.
class PoolNesting final : public Nesting {
 public:
  explicit PoolNesting(PoolCore& core);  // Throws std::bad_alloc.

  // If the pool has a parent, begin() registers the pool there, and end() removes the registration.
  void begin() noexcept override WEFT_NOT_ANALYZED;
  void end() noexcept override;
  [[nodiscard]] std::error_code ask_for_worker(OnFull when_full, Effects& effects) noexcept override
      WEFT_NOT_ANALYZED;
  void lock_with_sub_pools_closed(Close mode) noexcept override WEFT_NOT_ANALYZED;

 private:
  void move_out(PoolCore& parent) noexcept;
  void take_out_idle_sub_pools() noexcept WEFT_NOT_ANALYZED;
  [[nodiscard]] std::error_code hand_in(detail::PoolItem& drain, OnFull when_full,
                                        Effects& effects) noexcept WEFT_NOT_ANALYZED;
  [[nodiscard]] bool wait_for_room(detail::PoolItem& drain,
                                   Effects& effects) noexcept WEFT_NOT_ANALYZED;

  PoolCore& core_;
  SubPool* self_ = nullptr;  // The parent's record of this pool.
  // Guarded by the pools' shared lock. Not annotated, because Clang's analysis assumes one lock per
  // pool.
  SubPool* first_sub_pool_ = nullptr;
  PoolNesting* parent_ = nullptr;
};

}  // namespace weft::pool
