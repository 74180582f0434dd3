#include <weft/semaphore.hpp>

#include <mutex>

namespace weft {

using detail::Waiter;

bool Semaphore::try_acquire(std::uint32_t count) noexcept {
  const std::lock_guard guard(lock_);
  if (!waiters_.empty() || permits_ < count) return false;
  permits_ -= count;
  return true;
}

bool Semaphore::try_acquire_until(const Until& until, std::uint32_t count) noexcept {
  lock_.lock();
  if (waiters_.empty() && permits_ >= count) {
    permits_ -= count;
    lock_.unlock();
    return true;
  }
  Waiter self;
  self.amount = count;
  if (detail::wait_in_until(waiters_, lock_, self, detail::WaitReason::semaphore, until) ==
      detail::Claim::kNotifier) {
    return true;
  }
  // One that gave up may have stood in the way of smaller demands.
  lock_.lock();
  Waiter* granted = grant();
  lock_.unlock();
  detail::wake_chain(granted);
  return false;
}

void Semaphore::release(std::uint32_t count) noexcept {
  lock_.lock();
  permits_ += count;
  Waiter* granted = grant();
  lock_.unlock();
  detail::wake_chain(granted);
}

Waiter* Semaphore::grant() noexcept {
  Waiter* head = nullptr;
  Waiter** tail = &head;
  while (Waiter* first = waiters_.front()) {
    if (permits_ < first->amount) break;
    waiters_.erase(*first);
    if (!detail::WaitList::try_claim(*first)) continue;
    permits_ -= first->amount;
    *tail = first;
    tail = &first->next;
  }
  *tail = nullptr;
  return head;
}

std::uint64_t Semaphore::available_hint() noexcept {
  const std::lock_guard guard(lock_);
  return permits_;
}

}  // namespace weft
