#include <weft/once.hpp>

namespace weft {

using detail::relaxed;
using detail::release;
using detail::Waiter;

bool Once::begin() noexcept {
  lock_.lock();
  // Relaxed: the lock orders the access.
  if (running_) {
    Waiter self;
    detail::wait_in(waiters_, lock_, self, detail::WaitReason::once);
    return self.granted;
  }
  const bool is_first = !done_.load(relaxed);
  running_ = is_first;
  lock_.unlock();
  return is_first;
}

void Once::finish() noexcept {
  lock_.lock();
  done_.store(true, release);  // [done]
  running_ = false;
  Waiter* waiters = waiters_.claim_all();
  lock_.unlock();
  detail::wake_chain(waiters);
}

// The function has thrown, so the next waiter runs its own function.
void Once::pass_on() noexcept {
  lock_.lock();
  Waiter* next = waiters_.claim_front();
  running_ = next != nullptr;
  if (next != nullptr) next->granted = true;
  lock_.unlock();
  if (next != nullptr) detail::wake(next->waker);
}

}  // namespace weft
