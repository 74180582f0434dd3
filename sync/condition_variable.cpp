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

void ConditionVariable::wait(std::unique_lock<Mutex>& lock) noexcept {
  (void)wait_until(lock, Deadline::never());
}

// The mutex is unlocked while the list is locked: a notifier that then takes the mutex and notifies
// comes to the list after this waiter. No party ever takes the two locks the other way round.
std::cv_status ConditionVariable::wait_until(std::unique_lock<Mutex>& lock,
                                             Deadline deadline) noexcept {
  WEFT_CHECK(lock.owns_lock(), "a condition variable was waited for without its mutex locked");
  Mutex& mutex = *lock.mutex();
  waiters_lock_.lock();
  mutex.unlock();
  Waiter self;
  const bool notified = detail::wait_in_until(waiters_, waiters_lock_, self,
                                              detail::WaitReason::condition_variable, deadline);
  mutex.lock();
  return notified ? std::cv_status::no_timeout : std::cv_status::timeout;
}

}  // namespace weft
