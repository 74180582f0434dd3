// Lending a slot of a pool around a wait that the pool does not know of.
#pragma once

#include <weft/detail/pool_job.hpp>

namespace weft::detail {

// By a party that is about to park: while it lives, the slot of the caller's task is lent, if that
// runs in the pool of `job`. Null, or a job of another pool: nothing happens.
class SlotLoan {
 public:
  explicit SlotLoan(PoolJob* job) noexcept
      : job_(job != nullptr && job->lend_slot() ? job : nullptr) {}
  ~SlotLoan() {
    if (job_ != nullptr) job_->reclaim_slot();
  }
  SlotLoan(const SlotLoan&) = delete;
  SlotLoan& operator=(const SlotLoan&) = delete;

 private:
  PoolJob* const job_;
};

}  // namespace weft::detail
