// The pool as a whole: its size, its pauses, its end, its numbers.
#include <algorithm>
#include <optional>
#include <utility>

#include "pool/core/pool_core.hpp"

namespace weft::pool {

using detail::Waiter;
using detail::WaitReason;

PoolCore::PoolCore(PoolOptions options, const Bodies& bodies, PoolCore* parent)
    : options_(std::move(options)),
      bodies_(bodies),
      timings_(options_.timings ? std::make_unique<TimingBook>() : nullptr),
      parent_(parent),
      root_(parent == nullptr ? *this : parent->root_),
      state_(options_, parent != nullptr) {
  if (options_.prealloc) {
    const std::size_t most = options_.capacity + options_.queue_capacity;
    state_.queue.begin_with(most);
  }
}

PoolCore::~PoolCore() {
  nesting_ = nullptr;
  while (detail::TaskAttributes* spare = spares_) {
    spares_ = spare->next;
    spare->job->release_reference();
  }
}

std::error_code PoolCore::start() noexcept {
  std::error_code error;
  if (options_.prealloc) error = reserve_queue();
  lock_.lock();
  if (options_.prestart) {
    while (!error && state_.workers.live() < state_.kept_workers()) error = start_worker();
  }
  if (!error && options_.on_tick.call && !state_.ticker.is_running() && !state_.closed) {
    error = start_background(state_.ticker, bodies_.ticker);
  }
  lock_.unlock();
  return error;
}

// Its ring is lost when what it holds is dropped.
std::error_code PoolCore::reserve_queue() noexcept {
  lock_.lock();
  const bool has_ring =
      !state_.queue.empty() || state_.queue.has_room_for_plain() || grow_queue({});
  lock_.unlock();
  return has_ring ? std::error_code() : std::make_error_code(std::errc::not_enough_memory);
}

void PoolCore::close(Close mode) noexcept {
  // While it is open: workers may have to be started for what is queued.
  if (mode == Close::drain) end_all_pauses();
  // Destroyed without the lock, as that runs destructors of the user's and tells waiters; but
  // before the pool counts as joined.
  std::optional<TaskQueue> dropped(std::in_place);
  // A copy: the pool may be gone by the time of the request.
  std::stop_source running(std::nostopstate);
  Effects effects;
  lock_with_sub_pools_closed(mode);
  detail::WaitList sub_pools = nesting_->take_waiting_sub_pools(mode);
  state_.close(mode, *dropped, effects);
  while (Waiter* sub_pool = sub_pools.front()) {
    sub_pools.erase(*sub_pool);
    state_.waiters.blocked.push_back(*sub_pool);
  }
  if (mode == Close::cancel) running = stop_source_;
  if (state_.queue.empty()) state_.retire_all_without_task(effects);
  state_.call_workers(effects);
  state_.reaper.wake(effects);
  state_.autoscaler.wake(effects);
  // A pause may have sent drain tasks away, or what sub-pools waited behind is gone.
  const bool stays = !dropped->empty() || !state_.waiters.blocked.empty() ||
                     (state_.is_sub_pool && state_.lacks_worker());
  if (stays) ++state_.users;
  state_.tell_idle(effects);
  state_.tell_joined(effects);
  // The last access, if it is not a user: who joins may destroy the pool now.
  lock_.unlock();
  effects.perform();
  dropped.reset();
  if (stays) {
    lock_.lock();
    match_up();
    lock_.lock();
    leave();
  }
  (void)running.request_stop();  // Calls what users have registered.
}

void PoolCore::lock_with_parents() noexcept {
  if (parent_ != nullptr) nesting_->lock_parents();
  lock_.lock();
}

void PoolCore::unlock_with_parents() noexcept {
  lock_.unlock();
  if (parent_ != nullptr) nesting_->unlock_parents();
}

bool PoolCore::reopen() {
  std::stop_source unused;
  lock_with_parents();
  if (parent_ != nullptr && nesting_->parent_is_closing()) {
    unlock_with_parents();
    return false;
  }
  state_.closing = false;
  const bool was_closed = std::exchange(state_.closed, false);
  state_.set_limit(state_.workers.limit());
  if (std::exchange(state_.is_stopped, false)) stop_source_.swap(unused);
  unlock_with_parents();
  return was_closed;
}

void PoolCore::resize(std::size_t capacity) noexcept {
  lock_.lock();
  state_.resize(capacity);
  match_up();
}

void PoolCore::retire_idle_workers() noexcept {
  Effects effects;
  lock_.lock();
  if (state_.queue.startable() == 0) {
    while (state_.workers.idle() > 0) state_.workers.retire_coldest(effects);
  }
  state_.reaper.wake(effects);
  lock_.unlock();
  effects.perform();
}

// ---- Pauses: workers that look for a task go idle though some are queued, and are not called.

void PoolCore::pause() noexcept {
  lock_.lock();
  if (!state_.closed) state_.paused = state_.is_pause_wanted = true;
  lock_.unlock();
}

void PoolCore::resume() noexcept {
  lock_.lock();
  if (!std::exchange(state_.is_pause_wanted, false) || state_.pause_holders > 0) {
    lock_.unlock();
    return;
  }
  end_pause();
}

std::uint64_t PoolCore::hold_pause() noexcept {
  lock_.lock();
  const std::uint64_t number = state_.hold_pause();
  lock_.unlock();
  return number;
}

void PoolCore::release_pause(std::uint64_t number) noexcept {
  lock_.lock();
  if (state_.release_pause(number)) return end_pause();
  lock_.unlock();
}

// Before a drain.
void PoolCore::end_all_pauses() noexcept {
  lock_.lock();
  state_.is_pause_wanted = false;
  state_.pause_holders = 0;
  ++state_.open_number;
  if (state_.paused) return end_pause();
  lock_.unlock();
}

void PoolCore::end_pause() noexcept {
  Effects effects;
  state_.end_pause(effects);
  lock_.unlock();
  effects.perform();
  lock_.lock();
  match_up();
}

// ---- Waits

bool PoolCore::wait_paused_until(const Until& until) noexcept {
  lock_.lock();
  if (!state_.paused || state_.runs_nothing()) {
    const bool paused = state_.paused;
    lock_.unlock();
    return paused;
  }
  Waiter self;
  const auto winner =
      detail::wait_in_until(state_.waiters.paused, lock_, self, WaitReason::pool_wait, until);
  return winner == detail::Claim::kNotifier && self.granted;
}

bool PoolCore::wait_idle_until(const Until& until) noexcept {
  lock_.lock();
  if (state_.is_idle()) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return detail::wait_in_until(state_.waiters.idle, lock_, self, WaitReason::pool_wait, until) ==
         detail::Claim::kNotifier;
}

bool PoolCore::wait_for_completed(std::uint64_t count, const Until& until) noexcept {
  Counters& counters = state_.counters;
  lock_.lock();
  if (counters.ended() >= count || state_.is_joined()) {
    const bool reached = counters.ended() >= count;
    lock_.unlock();
    return reached;
  }
  Waiter self;
  self.amount = count;
  counters.next_awaited = std::min(counters.next_awaited, count);
  const auto winner =
      detail::wait_in_until(state_.waiters.counted, lock_, self, WaitReason::pool_wait, until);
  return winner == detail::Claim::kNotifier && self.granted;
}

bool PoolCore::join_until(const Until& until) noexcept {
  lock_.lock();
  if (state_.is_joined()) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return detail::wait_in_until(state_.waiters.joiners, lock_, self, WaitReason::pool_wait, until) ==
         detail::Claim::kNotifier;
}

// ---- Numbers

std::size_t PoolCore::capacity() noexcept {
  lock_.lock();
  const std::size_t capacity = state_.slots.capacity();
  lock_.unlock();
  return capacity;
}

std::size_t PoolCore::available() noexcept {
  lock_.lock();
  const std::size_t free = state_.slots.available();
  lock_.unlock();
  return parent_ != nullptr ? std::min(free, nesting_->available_in_parents()) : free;
}

bool PoolCore::is_closed() noexcept {
  lock_.lock();
  const bool closed = state_.closed;
  lock_.unlock();
  return closed;
}

bool PoolCore::is_paused() noexcept {
  lock_.lock();
  const bool paused = state_.paused;
  lock_.unlock();
  return paused;
}

bool PoolCore::is_ticked_by(std::uint64_t fiber) noexcept {
  lock_.lock();
  const bool is_ticked = state_.ticker.is_running() && state_.ticker.fiber() == fiber;
  lock_.unlock();
  return is_ticked && fiber != 0;
}

std::stop_token PoolCore::stop_token() noexcept {
  lock_.lock();
  std::stop_token token = stop_source_.get_token();
  lock_.unlock();
  return token;
}

PoolStats PoolCore::stats() noexcept {
  lock_.lock();
  const PoolStats stats = state_.read();
  lock_.unlock();
  return stats;
}

PoolTimings PoolCore::timings() noexcept {
  if (timings_ == nullptr) return {};
  lock_.lock();
  const PoolTimings timings = timings_->read();
  lock_.unlock();
  return timings;
}

}  // namespace weft::pool
