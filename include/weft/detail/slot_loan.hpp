// Lending a slot of a pool around a wait.
#pragma once

namespace weft::pool {
class PoolCore;
}

namespace weft::detail {

// By a party that is about to park: while it lives, the slot of the caller's task is lent, if that
// runs in `pool`, which is compared and not followed: so it may be gone if not. Null: nothing
// happens. Destroyed, it waits for a slot.
class SlotLoan {
 public:
  explicit SlotLoan(const pool::PoolCore* pool) noexcept;
  ~SlotLoan();
  SlotLoan(const SlotLoan&) = delete;
  SlotLoan& operator=(const SlotLoan&) = delete;

  // Whether there was anything to lend.
  [[nodiscard]] bool is_made() const noexcept { return lender_ != nullptr; }

 private:
  pool::PoolCore* const lender_;
};

}  // namespace weft::detail
