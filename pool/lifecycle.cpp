// The pool as a whole: its size, its end, its numbers.
#include <algorithm>
#include <string>
#include <utility>
#include <weft/this_fiber.hpp>

#include "pool/pool_core.hpp"
#include "pool/registry.hpp"

namespace weft::pool {

using detail::Waiter;

std::error_code PoolCore::start() noexcept {
  std::error_code error;
  if (options_.prealloc) error = reserve_queue();
  if (!error && options_.prestart) error = start_kept_workers();
  if (!error) error = start_ticker();
  return error;
}

// Its ring is lost when what it holds is dropped.
std::error_code PoolCore::reserve_queue() noexcept {
  lock_.lock();
  const bool has_ring = !queue_.empty() || queue_.has_room_for({}) || grow_queue({});
  lock_.unlock();
  return has_ring ? std::error_code() : std::make_error_code(std::errc::not_enough_memory);
}

std::error_code PoolCore::start_kept_workers() noexcept {
  std::error_code error;
  lock_.lock();
  while (!error && live_ < kept_workers()) error = start_worker();
  lock_.unlock();
  return error;
}

void PoolCore::close(Close mode) noexcept {
  // While it is open: workers may have to be started for what is queued.
  if (mode == Close::drain) resume();
  // Destroyed at the end, without the lock: that runs destructors of the user's and tells waiters.
  Backlog dropped;
  // A copy: the pool may be gone by the time of the request.
  std::stop_source running(std::nostopstate);
  WakeChain wakes;
  close_guests_and_lock(mode);
  closed_ = true;
  set_limit(limit_);
  if (paused_) end_pause(wakes);
  detail::WaitList guests = take_guests_in_line(mode);
  while (Waiter* submitter = blocked_.claim_front()) {  // Not granted: it answers Errc::closed.
    --blocked_count_;
    ++rejected_;
    wakes.add(*submitter);
  }
  while (Waiter* guest = guests.front()) {
    guests.erase(*guest);
    blocked_.push_back(*guest);
  }
  if (mode != Close::drain) {
    queue_.move_all_to(dropped);
    cancelled_ += dropped.size();
    load_ = running_ + extra_running_;
    return_slots(wakes);
    retire_surplus(wakes);
  }
  if (mode == Close::cancel) {
    cancelled_all_ = true;
    running = stop_source_;
  }
  if (queue_.empty()) retire_all_without_task(wakes);
  while (queue_wants_worker()) wakes.add(call_idle());
  wakes.add_all(reaper_bed_.claim_all());
  wakes.add_all(keeper_bed_.claim_all());
  // A pause may have sent visits away, or what sub-pools waited behind is gone.
  const bool stays = !blocked_.empty() || (host_ != nullptr && lacks_worker());
  if (stays) ++present_;
  tell_if_quiet(wakes);
  tell_if_gone(wakes);
  // The last access, if it is not present: who joins may destroy the pool now.
  lock_.unlock();
  wakes.wake_all();
  if (stays) {
    match_up_now();
    leave();
  }
  (void)running.request_stop();  // Calls what users have registered.
}

bool PoolCore::reopen() {
  std::stop_source unused;
  lock_with_hosts();
  if (host_ != nullptr && host_->closing_) {
    unlock_with_hosts();
    return false;
  }
  closing_ = false;
  const bool was_closed = std::exchange(closed_, false);
  set_limit(limit_);
  if (std::exchange(cancelled_all_, false)) stop_source_.swap(unused);
  unlock_with_hosts();
  return was_closed;
}

void PoolCore::resize(std::size_t capacity) noexcept {
  lock_.lock();
  set_capacity(capacity);
  match_up();
}

// Requires lock_, and releases it. Brings items, workers, blocked parties and lenders together
// after a change that was not a finished task. What must not be done under the lock is done
// without it, and all is looked at again.
void PoolCore::match_up() noexcept {
  bool may_start = true;
  bool may_grow = true;
  for (;;) {
    WakeChain wakes;
    return_slots(wakes);
    retire_surplus(wakes);
    admit_blocked(wakes);
    while (queue_wants_worker()) wakes.add(call_idle());
    if (!wakes.empty()) {
      lock_.unlock();
      wakes.wake_all();
      lock_.lock();
    } else if (may_start && lacks_worker()) {
      // Without fibers or memory the pool goes on with the workers it has.
      const std::error_code error =
          host_ == nullptr ? grow(queue_.startable()) : call_visit(OnFull::block);
      may_start = !error;
    } else if (may_grow && !blocked_.empty() && has_room() && !queue_.can_push({})) {
      may_grow = grow_queue({});
    } else {
      lock_.unlock();
      return;
    }
  }
}

// Requires lock_.
void PoolCore::tell_if_quiet(WakeChain& wakes) noexcept {
  if (is_quiet()) wakes.add_all(quiet_waiters_.claim_all());
}

bool PoolCore::is_gone() const noexcept {
  return closed_ && present_ + in_callers_ == 0 && queue_.empty();
}

bool PoolCore::only_ticker_is_left() const noexcept {
  return closed_ && ticker_alive_ && present_ == 1 && in_callers_ == 0 && queue_.empty();
}

// Requires lock_, whose release is the caller's last access to the pool if it is gone.
void PoolCore::tell_if_gone(WakeChain& wakes) noexcept {
  if (only_ticker_is_left()) wakes.add_all(ticker_bed_.claim_all());
  if (!is_gone()) return;
  wakes.add_all(joiners_.claim_all());
  wakes.add_all(count_waiters_.claim_all());  // Not granted: nothing is counted any more.
}

// A task that waited for its pool to be quiet or gone would wait for itself.
void PoolCore::refuse_own_tasks() const {
  if (called_from_worker_of(this)) refuse_wait("a task cannot wait for its own pool");
}

void PoolCore::refuse_wait(const char* why) {
  throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                          std::string("weft::FiberPool: ") + why);
}

bool PoolCore::wait_idle_until(const Until& until) {
  refuse_own_tasks();
  lock_.lock();
  if (is_quiet()) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return detail::wait_in_until(quiet_waiters_, lock_, self, detail::WaitReason::pool_wait, until) ==
         detail::Claim::kNotifier;
}

bool PoolCore::join_until(const Until& until) {
  refuse_own_tasks();
  lock_.lock();
  if (ticker_alive_ && ticker_ == this_fiber::id()) {
    lock_.unlock();
    refuse_wait("on_tick cannot join the pool that calls it");
  }
  if (is_gone()) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return detail::wait_in_until(joiners_, lock_, self, detail::WaitReason::pool_wait, until) ==
         detail::Claim::kNotifier;
}

std::size_t PoolCore::capacity() noexcept {
  lock_.lock();
  const std::size_t capacity = capacity_;
  lock_.unlock();
  return capacity;
}

std::size_t PoolCore::available() noexcept {
  lock_.lock();
  const std::size_t free = capacity_ - std::min(capacity_, load_);
  lock_.unlock();
  return host_ == nullptr ? free : std::min(free, host_->available());
}

bool PoolCore::is_closed() noexcept {
  lock_.lock();
  const bool closed = closed_;
  lock_.unlock();
  return closed;
}

std::stop_token PoolCore::stop_token() noexcept {
  lock_.lock();
  std::stop_token token = stop_source_.get_token();
  lock_.unlock();
  return token;
}

PoolStats PoolCore::stats() noexcept {
  PoolStats stats;
  lock_.lock();
  stats.live = live_;
  stats.busy = running_;
  stats.idle = live_ - running_;
  stats.lent = lent_;
  stats.in_callers = in_callers_;
  stats.queued = queue_.size();
  stats.blocked = blocked_count_;
  stats.submitted = submitted_;
  stats.completed = completed_;
  stats.failed = failed_;
  stats.cancelled = cancelled_;
  stats.rejected = rejected_;
  stats.started = started_;
  stats.retired = retired_;
  lock_.unlock();
  return stats;
}

}  // namespace weft::pool
