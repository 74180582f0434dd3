// The waiters to wake, and the job to destroy, after a pool's lock is released.
#pragma once

#include <utility>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/waiter.hpp>

namespace weft::pool {

// Collects the waiters whose waits have ended under a lock, and wakes them in order after the
// unlock. Also keeps a job to which no other reference exists, and destroys it after the unlock.
class Effects {
 public:
  Effects() noexcept = default;
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr && unused_ == nullptr; }
  void wake(detail::Waiter& waiter) noexcept {
    if (!waiter.waker) return;  // A sub-pool in its parent's wait queue has no parked fiber.
    waiter.next = nullptr;
    *end_ = &waiter;
    end_ = &waiter.next;
  }
  // Ends all waits in the list.
  void end_waits(detail::WaitList& list, bool granted) noexcept {
    while (detail::Waiter* const waiter = list.claim_front()) {
      waiter->granted = granted;
      wake(*waiter);
    }
  }
  // Takes over the waiters that WaitList::claim_all() has returned.
  void wake_all(detail::Waiter* chain) noexcept {
    while (chain != nullptr) {
      detail::Waiter* const next = chain->next;
      wake(*chain);
      chain = next;
    }
  }
  // Must be called at most once, because there is room for one job.
  void destroy(detail::PoolJob& job) noexcept { unused_ = &job; }
  // Passes the waiters to the caller. The caller must also perform the other effects.
  [[nodiscard]] detail::Waiter* take() noexcept {
    end_ = &first_;
    return std::exchange(first_, nullptr);
  }
  // Must be called while the caller holds no lock.
  void perform() noexcept {
    if (first_ != nullptr) detail::wake_chain(take());
    if (unused_ != nullptr) std::exchange(unused_, nullptr)->release_reference();
  }

 private:
  detail::Waiter* first_ = nullptr;
  detail::Waiter** end_ = &first_;
  detail::PoolJob* unused_ = nullptr;
};

}  // namespace weft::pool
