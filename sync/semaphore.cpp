#include <weft/semaphore.hpp>

namespace weft {

using detail::Waiter;

void Semaphore::add(std::int64_t permits) noexcept {
  using Limits = std::numeric_limits<std::int64_t>;
  if (!__builtin_add_overflow(available_, permits, &available_)) return;
  available_ = permits > 0 ? Limits::max() : Limits::min();
}

bool Semaphore::take(std::uint64_t count) noexcept {
  if (available_ < 0 || static_cast<std::uint64_t>(available_) < count) return false;
  available_ -= static_cast<std::int64_t>(count);
  return true;
}

bool Semaphore::try_acquire(std::uint64_t count) noexcept {
  const detail::SpinGuard guard(lock_);
  return waiters_.empty() && take(count);
}

bool Semaphore::try_acquire_until(const Until& until, std::uint64_t count) noexcept {
  detail::give_way_if_due();
  lock_.lock();
  if (waiters_.empty() && take(count)) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  self.amount = count;
  if (detail::wait_in_until(waiters_, lock_, self, detail::WaitReason::semaphore, until) ==
      detail::Claim::kNotifier) {
    return true;
  }
  // The waiter that gave up may have blocked smaller demands.
  lock_.lock();
  Waiter* granted = grant();
  lock_.unlock();
  detail::wake_chain(granted);
  return false;
}

void Semaphore::release(std::uint64_t count) noexcept {
  lock_.lock();
  add(clamp(count));
  Waiter* granted = grant();
  lock_.unlock();
  detail::wake_chain(granted);
}

void Semaphore::resize(std::uint64_t permits) noexcept {
  lock_.lock();
  add(clamp(permits) - size_);
  size_ = clamp(permits);
  Waiter* granted = grant();
  lock_.unlock();
  detail::wake_chain(granted);
}

Waiter* Semaphore::grant() noexcept {
  Waiter* head = nullptr;
  Waiter** tail = &head;
  while (Waiter* first = waiters_.front()) {
    if (!take(first->amount)) break;
    waiters_.erase(*first);
    if (!detail::WaitList::try_claim(*first)) {
      add(clamp(first->amount));
      continue;
    }
    *tail = first;
    tail = &first->next;
  }
  *tail = nullptr;
  return head;
}

std::uint64_t Semaphore::available_hint() const noexcept {
  const detail::SpinGuard guard(lock_);
  return available_ < 0 ? 0 : static_cast<std::uint64_t>(available_);
}

}  // namespace weft
