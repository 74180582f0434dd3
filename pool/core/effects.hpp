// The effects that a change under a pool's lock asks for afterwards.
#pragma once

#include <utility>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/waiter.hpp>

namespace weft::pool {

// Waiters that were made ready under a lock and are woken, in order, once it has been released; and
// a job without other references, which is destroyed then.
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
  // Ends all waits of a list.
  void end_waits(detail::WaitList& list, bool granted) noexcept {
    while (detail::Waiter* const waiter = list.claim_front()) {
      waiter->granted = granted;
      wake(*waiter);
    }
  }
  // Takes over what WaitList::claim_all() returned.
  void wake_all(detail::Waiter* chain) noexcept {
    while (chain != nullptr) {
      detail::Waiter* const next = chain->next;
      wake(*chain);
      chain = next;
    }
  }
  // There is only ever one.
  void destroy(detail::PoolJob& job) noexcept { unused_ = &job; }
  // Hands the waiters on to the caller, which performs the rest instead.
  [[nodiscard]] detail::Waiter* take() noexcept {
    end_ = &first_;
    return std::exchange(first_, nullptr);
  }
  // Without any lock held.
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
