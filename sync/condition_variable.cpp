#include <weft/condition_variable.hpp>

#include "base/panic.hpp"

namespace weft {

using detail::Waiter;

void ConditionVariable::notify_one() noexcept {
  waiters_lock_.lock();
  Waiter* waiter = waiters_.claim_front();
  waiters_lock_.unlock();
  if (waiter != nullptr) detail::wake(waiter->waker);
}

void ConditionVariable::notify_all() noexcept {
  waiters_lock_.lock();
  Waiter* waiters = waiters_.claim_all();
  waiters_lock_.unlock();
  detail::wake_chain(waiters);
}

void ConditionVariable::check_locked(bool locked) noexcept {
  WEFT_CHECK(locked, "a condition variable was waited for without its mutex locked");
}

std::cv_status ConditionVariable::wait_listed(const Until& until) noexcept {
  Waiter self;
  const auto winner = detail::wait_in_until(waiters_, waiters_lock_, self,
                                            detail::WaitReason::condition_variable, until);
  return winner == detail::Claim::kNotifier ? std::cv_status::no_timeout : std::cv_status::timeout;
}

}  // namespace weft
