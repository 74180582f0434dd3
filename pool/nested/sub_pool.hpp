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

// A sub-pool as its parent sees it, to which its drain tasks hold on. They may be queued at the
// parent for long, so the sub-pool does not wait for them when it ends: one that comes later finds
// nobody. It is also the sub-pool's place in the parent's wait queue: a submitter who is not woken.
// Order
//   [sub-pool-refs]  release (acq_rel, both sides): the last one sees all uses.
class SubPool : public Submitter {
 public:
  explicit SubPool(PoolCore& core) noexcept : core_(core) {}
  SubPool(const SubPool&) = delete;
  SubPool& operator=(const SubPool&) = delete;

  // The sub-pool's core, of which the caller is a user until it leaves; null if it has ended.
  [[nodiscard]] PoolCore* enter() noexcept;
  // By the sub-pool, when it ends.
  void detach() noexcept;
  // While it waits for room: it lives.
  [[nodiscard]] PoolCore& core() noexcept { return core_; }
  // Relaxed: the caller has a reference already.
  void keep() noexcept { references_.fetch_add(1, detail::relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, detail::acq_rel) == 1) delete this;  // [sub-pool-refs]
  }

  // Guarded by the parent's lock: what is accepted when its turn comes, and all sub-pools.
  detail::PoolItem drain;
  SubPool* next_sub_pool = nullptr;
  SubPool* previous_sub_pool = nullptr;

 private:
  ~SubPool() = default;

  detail::SpinLock lock_;
  PoolCore& core_;
  bool has_ended_ = false;
  detail::Atomic<std::uint32_t> references_{1};
};

// How a drain task came to be accepted by the parent.
enum class Arrival : std::uint8_t {
  called,      // At once: the sub-pool counts it as starting.
  from_queue,  // The sub-pool had to wait for room, as a blocked submitter does.
};

// A task of the parent that runs tasks of its sub-pool. The parent settles it, as it does every
// job, when it frees the slot: then the waiters of the sub-pool's last job are told, too, and the
// sub-pool is left. Dropped without having run, it tells the sub-pool not to count on it.
class DrainTask final : public detail::PoolJob {
 public:
  DrainTask(const PoolCore& parent, SubPool& sub_pool) noexcept
      : PoolJob(parent, Kind::drain), sub_pool_(sub_pool) {
    sub_pool.keep();
  }
  void wait_in_queue() noexcept { arrival_ = Arrival::from_queue; }
  // The sub-pool knows already that it will not take place.
  void call_off() noexcept { is_off_ = true; }
  [[nodiscard]] Settled settle(Outcome outcome) noexcept override;

 private:
  ~DrainTask() override;
  bool invoke() noexcept override;
  void drop_callable() noexcept override;
  void request_stop() noexcept override {}
  void fail(std::exception_ptr /*exception*/) noexcept override {}

  SubPool& sub_pool_;
  Arrival arrival_ = Arrival::called;
  bool is_off_ = false;
  PoolCore* entered_ = nullptr;
  PoolJob* finished_ = nullptr;  // The sub-pool's job whose waiters are to be told.
  Outcome outcome_ = Outcome::completed;
};

// A pool among pools: what it is to its parent, and its own sub-pools. A call along a chain of
// locks is left out of the analysis, which knows the locks of two pools by name and no chain.
class PoolNesting final : public Nesting {
 public:
  // Moves in with the parent, if the pool has one; nobody else knows the new pool. Throws
  // std::bad_alloc.
  explicit PoolNesting(PoolCore& core) WEFT_NOT_ANALYZED;
  // After the pool was closed and joined.
  ~PoolNesting() override;

  [[nodiscard]] std::error_code ask_for_worker(OnFull when_full) noexcept override
      WEFT_NOT_ANALYZED;
  void lock_with_sub_pools_closed(Close mode) noexcept override WEFT_NOT_ANALYZED;

 private:
  void move_out(PoolCore& parent) noexcept;
  void take_out_idle_sub_pools() noexcept WEFT_NOT_ANALYZED;
  [[nodiscard]] std::error_code ask_once(OnFull when_full) noexcept WEFT_NOT_ANALYZED;
  [[nodiscard]] std::error_code submit_drain(OnFull when_full) noexcept WEFT_NOT_ANALYZED;
  [[nodiscard]] std::error_code wait_for_room(detail::PoolItem& item) noexcept;

  PoolCore& core_;
  SubPool* self_ = nullptr;            // This pool as its parent knows it.
  SubPool* first_sub_pool_ = nullptr;  // Guarded by the pool's lock.
  PoolNesting* parent_ = nullptr;
};

}  // namespace weft::pool
