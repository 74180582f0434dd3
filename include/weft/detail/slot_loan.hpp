// Lending a slot of a pool around a wait.
#pragma once

namespace weft::pool {
class PoolCore;
class Registration;
}  // namespace weft::pool

namespace weft::detail {

// By a party that is about to park: while it lives, the slot of the caller's task is lent, if that
// runs in a pool of `family`; with those of the pools around it, if that is a sub-pool. The family
// is compared and not followed, so it may be gone if the answer is no. Null: nothing happens.
// Destroyed, it waits for the slots.
class SlotLoan {
 public:
  explicit SlotLoan(const pool::PoolCore* family) noexcept;
  ~SlotLoan();
  SlotLoan(const SlotLoan&) = delete;
  SlotLoan& operator=(const SlotLoan&) = delete;

  // Whether there was anything to lend.
  [[nodiscard]] bool is_made() const noexcept { return lender_ != nullptr; }

 private:
  pool::Registration* const lender_;
};

}  // namespace weft::detail
