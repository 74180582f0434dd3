#include <weft/condition_variable.hpp>

#include "base/panic.hpp"
#include "sync/misuse.hpp"

namespace weft {

using detail::Claim;
using detail::Waiter;

void ConditionVariable::notify_one() noexcept {
  waiters_lock_.lock();
  Waiter* waiter = waiters_.claim_front();
  waiters_lock_.unlock();
  if (waiter != nullptr) Wait::of(*waiter).notify();
}

void ConditionVariable::notify_all() noexcept {
  waiters_lock_.lock();
  Waiter* waiter = waiters_.claim_all();
  waiters_lock_.unlock();
  while (waiter != nullptr) {
    Waiter* next = waiter->next;
    if (next != nullptr) next->waker.prefetch();
    Wait::of(*waiter).notify();
    waiter = next;
  }
}

void ConditionVariable::check_locked(bool locked) const noexcept {
  WEFT_CHECK(locked, sync::of_object(this,
                                     "a condition variable was waited for without its mutex "
                                     "locked; lock what is given to wait() before"));
}

ConditionVariable::Wait::Wait(ConditionVariable& condition, const Until& until) noexcept
    : condition_(condition) {
  waker = detail::current();
  if (!until.is_never()) claim = &bounded_.emplace(until).claim();
  const detail::SpinGuard guard(condition_.waiters_lock_);
  condition_.waiters_.push_back(*this);
}

ConditionVariable::Wait::~Wait() {
  if (has_ended_) return;
  condition_.waiters_lock_.lock();
  const bool was_listed = linked;
  condition_.waiters_.erase_if_linked(*this);
  condition_.waiters_lock_.unlock();
  if (was_listed) return;
  (void)park();  // A notifier has taken the waiter out of the list, and will access it once more.
  condition_.notify_one();
}

std::cv_status ConditionVariable::Wait::park() noexcept {
  has_ended_ = true;
  handover_.lock();
  if (is_notified_) {
    handover_.unlock();
    return std::cv_status::no_timeout;
  }
  is_parked_ = true;
  const detail::After unlock = detail::unlock_after(handover_);
  constexpr auto kReason = detail::WaitReason::condition_variable;
  if (!bounded_) {
    detail::park(unlock, kReason);
    return std::cv_status::no_timeout;
  }
  if (bounded_->park(unlock, kReason) == Claim::kNotifier) return std::cv_status::no_timeout;
  // The clock may have been faster than the After.
  handover_.lock();
  handover_.unlock();
  const detail::SpinGuard guard(condition_.waiters_lock_);
  condition_.waiters_.erase_if_linked(*this);
  return std::cv_status::timeout;
}

void ConditionVariable::Wait::notify() noexcept {
  handover_.lock();
  const detail::Waker sleeper = waker;
  const bool must_wake = is_parked_;
  is_notified_ = true;
  handover_.unlock();  // This is the last access, unless a waiter must still be woken.
  if (must_wake) detail::wake(sleeper);
}

}  // namespace weft
