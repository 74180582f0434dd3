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

// SubPool is the parent's record of a sub-pool; the sub-pool's drain tasks hold references to it.
// Drain tasks may be queued at the parent for long, so the sub-pool does not wait for them when it
// ends: a later one finds no pool. SubPool is also the sub-pool's place in the parent's wait queue:
// a submitter that is not woken. The lock of the pools guards it, except for the references.
// Order
//   [sub-pool-refs]  release (acq_rel, both sides): the last one sees all uses.
class SubPool : public Submitter {
 public:
  SubPool(PoolCore& its_core, PoolCore& its_parent) noexcept : core(its_core), parent(its_parent) {}
  SubPool(const SubPool&) = delete;
  SubPool& operator=(const SubPool&) = delete;

  // Returns the sub-pool's core, with the caller as a user until it leaves; null if the pool has
  // ended.
  [[nodiscard]] PoolCore* enter() noexcept;
  // Relaxed: the caller has a reference already.
  void keep() noexcept { references_.fetch_add(1, detail::relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, detail::acq_rel) == 1) delete this;  // [sub-pool-refs]
  }

  // Valid while the caller is a user, while it is in the parent's wait queue, or before the pool
  // ends.
  PoolCore& core;
  PoolCore& parent;
  // The parent accepts it when its turn comes; a refused item may stay here until the next one.
  detail::PoolItem drain;
  bool has_ended = false;
  SubPool* next_sub_pool = nullptr;
  SubPool* previous_sub_pool = nullptr;

 private:
  ~SubPool() = default;

  detail::Atomic<std::uint32_t> references_{1};
};

// A task of the parent that runs tasks of its sub-pool. The parent completes it, as every job, when
// it frees the slot: then it also wakes the waiters of the sub-pool's last job, and leaves the
// sub-pool. The sub-pool counts it as a starting worker from its acceptance; if it is dropped
// without having run, it corrects that count.
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
  PoolJob* finished_ = nullptr;  // The sub-pool's job whose waiters must be notified.
  Outcome outcome_ = Outcome::completed;
};

// The nesting of a pool: its record at its parent, and its own sub-pools. The analysis knows the
// shared lock by the names of two pools, and so cannot follow the calls between them.
class PoolNesting final : public Nesting {
 public:
  explicit PoolNesting(PoolCore& core);  // Throws std::bad_alloc.

  // Registers with the parent, if the pool has one, and deregisters.
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
  // Guarded by the lock of the pools. Unchecked: it has the name of another pool in most functions.
  SubPool* first_sub_pool_ = nullptr;
  PoolNesting* parent_ = nullptr;
};

}  // namespace weft::pool
