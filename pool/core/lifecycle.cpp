// Controls the pool as a whole: its end, size, pauses and statistics.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <weft/detail/exceptions.hpp>

#include "pool/core/pool_core.hpp"

namespace weft::pool {

using detail::Waiter;

PoolCore::PoolCore(PoolOptions&& options, const Bodies& bodies, PoolCore* parent)
    : options_(std::make_unique<const PoolOptions>(std::move(options))),
      bodies_(bodies),
      runner_(*options_),
      parent_(parent),
      root_(parent == nullptr ? *this : parent->root_),
      lock_(parent == nullptr ? own_lock_ : parent->lock_),
      state_(*options_, parent != nullptr) {
  if (options_->prealloc) state_.queue.begin_with(options_->capacity + options_->queue_capacity);
}

PoolCore::~PoolCore() {
  if (nesting_.is_made()) nesting_->end();
}

std::error_code PoolCore::start() noexcept {
  std::error_code error;
  lock_.lock();
  // A close that drops the queued tasks also drops the ring that holds them.
  const bool has_ring = !state_.queue.empty() || state_.queue.has_room_for_plain();
  if (options_->prealloc && !has_ring && !grow_queue({})) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  if (options_->prestart) {
    while (!error && state_.workers.live() < state_.kept_workers()) error = start_worker();
  }
  if (!error && options_->on_tick.call && !state_.ticker.is_running() && !state_.closed) {
    error = start_background(state_.ticker, bodies_.ticker);
  }
  lock_.unlock();
  return error;
}

void PoolCore::close(Close mode) noexcept {
  // Holds the dropped tasks. They are destroyed without the lock, because their destructors run
  // user code and notify waiters. The pool counts as joined only after that.
  std::optional<TaskQueue> dropped(std::in_place);
  // Becomes a copy of stop_source_, because the pool may be destroyed before request_stop() runs.
  std::stop_source running(std::nostopstate);
  Effects effects;
  lock_with_sub_pools_closed(mode);
  state_.close(mode, *dropped, effects);
  if (mode == Close::cancel) running = stop_source_;
  if (state_.queue.empty()) state_.retire_all_without_task(effects);
  state_.call_workers(effects);
  state_.reaper.wake(effects);
  state_.autoscaler.wake(effects);
  // After the unlock, this call may still have to destroy dropped tasks, admit sub-pools, or start
  // workers, because the close has ended a pause.
  const bool stays = !dropped->empty() || !state_.waiters.blocked.empty() || state_.lacks_worker();
  if (stays) ++state_.users;
  state_.tell(effects);
  // Unless it is counted in `users`, the caller must not access the pool after the unlock, because
  // a joiner may destroy the pool.
  unlock(effects);
  dropped.reset();
  if (stays) {
    lock_.lock();
    match_up();
    leave();
  }
  (void)running.request_stop();  // Runs callbacks that users have registered.
}

bool PoolCore::reopen() {
  std::stop_source unused(std::nostopstate);
  bool was_closed = false;
  lock_.lock();
  if (parent_ == nullptr || !parent_->shared_state().closing) {
    state_.closing = false;
    was_closed = std::exchange(state_.closed, false);
    state_.set_limit(state_.workers.limit());
    if (std::exchange(state_.is_stopped, false)) stop_source_.swap(unused);
  }
  lock_.unlock();
  return was_closed;
}

void PoolCore::retire_idle_workers() noexcept {
  Effects effects;
  lock_.lock();
  if (state_.queue.startable() == 0) state_.workers.retire_idle(effects);
  state_.reaper.wake(effects);
  unlock(effects);
}

// ---- Waits, and numbers

bool PoolCore::wait(Condition condition, std::uint64_t count, const Until& until) noexcept {
  lock_.lock();
  if (const std::optional<bool> answer = state_.answer(condition, count)) {
    lock_.unlock();
    return *answer;
  }
  Waiter self;
  if (condition == Condition::counted) {
    self.amount = count;
    state_.counters.next_awaited = std::min(state_.counters.next_awaited, count);
  }
  const auto winner = detail::wait_in_until(state_.waiters.of(condition), lock_, self,
                                            detail::WaitReason::pool_wait, until);
  return winner == detail::Claim::kNotifier && self.granted;
}

std::size_t PoolCore::available() noexcept {
  const std::size_t own = locked([](const PoolState& state) { return state.slots.available(); });
  return parent_ == nullptr ? own : std::min(own, parent_->available());
}

std::stop_token PoolCore::stop_token() noexcept {
  {
    const detail::SpinGuard guard(lock_);
    if (stop_source_.stop_possible()) return stop_source_.get_token();
  }
  std::stop_source made(std::nostopstate);
  WEFT_TRY { made = std::stop_source(); }
  WEFT_CATCH_ALL { return {}; }
  const detail::SpinGuard guard(lock_);
  if (!stop_source_.stop_possible()) {
    if (state_.is_stopped) (void)made.request_stop();  // No token exists yet, so no callback runs.
    stop_source_.swap(made);
  }
  return stop_source_.get_token();
}

PoolTimings PoolCore::timings() noexcept {
  const detail::SpinGuard guard(lock_);
  return runner_.timings();
}

}  // namespace weft::pool
