// How many workers may live.
//
// Under GrowPolicy::load_factor that is a limit below the capacity, which follows the load: a
// submit that makes the load too high raises it, and a fiber, the keeper, looks every interval
// whether it is to be lowered. Within the limit workers are started on demand, and who lives
// beyond it is surplus, as after resize().
//
// With fewer workers than tasks, those that run may wait for one that is queued. So the keeper
// also raises the limit if something is queued and nothing has been started since it looked last.
// It is there whenever something is queued under a limit: while it is not, raise_at_ is 0, and
// the next submit starts it.
#include <algorithm>

#include "pool/pool_core.hpp"
#include "pool/spawn_fiber.hpp"

namespace weft::pool {

using detail::Waiter;
using Kind = GrowPolicy::Kind;

namespace {

// Saturated: factors are the user's.
std::size_t scaled(double factor, std::size_t limit) noexcept {
  const double product = factor * static_cast<double>(limit);
  return product < 9e18 ? static_cast<std::size_t>(product) : SIZE_MAX;
}

}  // namespace

// Requires lock_.
std::size_t PoolCore::kept_workers() const noexcept {
  return std::min(options_.min_workers, capacity_);
}

// Requires lock_.
std::size_t PoolCore::least_limit() const noexcept {
  return std::max<std::size_t>(kept_workers(), 1);
}

// Requires lock_. The nearest limit that the policy and the capacity allow.
void PoolCore::set_limit(std::size_t limit) noexcept {
  // A closed pool has no keeper.
  const bool is_moving =
      options_.grow.kind() == Kind::load_factor && least_limit() < capacity_ && !closed_;
  limit_ = is_moving ? std::clamp(limit, least_limit(), capacity_) : capacity_;
  raise_at_ = SIZE_MAX;
  if (!is_moving) return;
  if (!keeper_alive_) {
    raise_at_ = 0;
  } else if (limit_ < capacity_) {
    raise_at_ = scaled(options_.grow.factor().up, limit_);
  }
}

// Requires lock_; releases it meanwhile. One step towards what must_grow() asked for; the caller
// asks again. Returns what kept a fiber from being started.
std::error_code PoolCore::grow(std::size_t items) noexcept {
  if (running_ + items > raise_at_) {
    if (!keeper_alive_) return start_keeper();
    raise_limit();
    return {};
  }
  const std::error_code error = start_worker();
  if (!error && options_.grow.kind() == Kind::eager) {
    // One is enough for the task: what keeps the others from being started is no refusal.
    while (!closed_ && live_ < capacity_ && !start_worker()) {
    }
  }
  return error;
}

// Requires lock_.
void PoolCore::raise_limit() noexcept {
  set_limit(limit_ + std::min(options_.grow.factor().step, capacity_ - limit_));
}
void PoolCore::lower_limit() noexcept {
  set_limit(limit_ - std::min(options_.grow.factor().step, limit_));
}

// Requires lock_; releases it meanwhile.
std::error_code PoolCore::start_keeper() noexcept {
  keeper_alive_ = true;
  ++present_;
  set_limit(limit_);
  lock_.unlock();
  const std::error_code error = spawn_fiber(options_, [this] { keep_limit(); });
  lock_.lock();
  if (error) {
    // Others may have relied on it, or have closed the pool.
    keeper_alive_ = false;
    --present_;
    set_limit(capacity_);
    WakeChain wakes;
    tell_if_gone(wakes);
    lock_.unlock();
    wakes.wake_all();
    lock_.lock();
  }
  return error;
}

void PoolCore::keep_limit() noexcept {
  lock_.lock();
  std::uint64_t begun = left_queue();
  while (!closed_) {
    Waiter self;
    const Deadline next = Deadline::after(options_.grow.factor().interval);
    // Woken by close(), or by the clock.
    (void)detail::wait_in_until(keeper_bed_, lock_, self, detail::WaitReason::sleep, next);
    lock_.lock();
    const bool is_stuck = queue_.startable() > 0 && !paused_ && left_queue() == begun;
    begun = left_queue();
    if (is_stuck) {
      raise_limit();
    } else if (static_cast<double>(running_ + queue_.startable()) <
               options_.grow.factor().down * static_cast<double>(limit_)) {
      lower_limit();
    }
    match_up();
    lock_.lock();
    if (limit_ == least_limit() && running_ + lent_ + queue_.size() == 0) break;
  }
  keeper_alive_ = false;
  set_limit(limit_);
  match_up();  // Of a closed pool: what is still queued has no limit any more.
  leave();
}

}  // namespace weft::pool
