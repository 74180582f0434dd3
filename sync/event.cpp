#include <weft/event.hpp>

namespace weft {

using detail::relaxed;
using detail::release;
using detail::Waiter;

void Event::set() noexcept {
  lock_.lock();
  set_.store(true, release);  // [set]
  Waiter* waiters = waiters_.claim_all();
  lock_.unlock();
  detail::wake_chain(waiters);
}

// Relaxed, here and below: the lock orders these accesses.
void Event::reset() noexcept {
  lock_.lock();
  set_.store(false, relaxed);
  lock_.unlock();
}

bool Event::wait_until(const Until& until) noexcept {
  detail::give_way_if_due();
  lock_.lock();
  if (set_.load(relaxed)) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return detail::wait_in_until(waiters_, lock_, self, detail::WaitReason::event, until) ==
         detail::Claim::kNotifier;
}

}  // namespace weft
