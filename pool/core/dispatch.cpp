// Matches tasks with workers.
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/detail/invariant.hpp>
#include <weft/detail/waist.hpp>
#include <weft/this_fiber.hpp>

#include "pool/core/pool_core.hpp"

namespace weft::pool {

using detail::PoolItem;
using detail::Waiter;

void PoolCore::match_up(Effects& effects) noexcept {
  bool may_start = true;
  bool may_grow = true;
  for (;;) {
    state_.return_slots(effects);
    state_.workers.retire_surplus(effects);
    state_.admit_blocked(effects);
    state_.call_workers(effects);
    if (!effects.empty()) {
      unlock(effects);
      lock_.lock();
    } else if (may_start && state_.lacks_worker()) {
      // If fibers or memory are unavailable, the pool continues with its present workers.
      may_start = !(state_.is_sub_pool ? nesting_->ask_for_worker(OnFull::block, effects)
                                       : grow(state_.queue.startable()));
    } else if (may_grow && state_.lacks_memory_for_blocked()) {
      may_grow = grow_queue({});
    } else {
      lock_.unlock();
      return;
    }
  }
}

bool PoolCore::grow_queue(const PoolItem& item) noexcept {
  const TaskQueue::Demand demand = state_.queue.demand_for(item);
  lock_.unlock();
  TaskQueue::Memory memory = TaskQueue::make_memory(demand);
  lock_.lock();
  if (memory.empty()) return false;
  memory = state_.queue.add(std::move(memory));
  if (!memory.empty()) {
    lock_.unlock();
    memory = {};
    lock_.lock();
  }
  return true;
}

std::error_code PoolCore::start_worker_for(const PoolItem& item, Effects& effects) noexcept {
  if (!state_.is_sub_pool) return grow(state_.queue.startable_with(item));
  return nesting_->ask_for_worker(state_.may_wait_for_parent() ? OnFull::block : OnFull::reject,
                                  effects);
}

std::error_code PoolCore::grow(std::size_t items) noexcept {
  if (state_.slots.running() + items > state_.raise_at) {
    if (state_.autoscaler.is_running()) {
      state_.raise_limit();
      return {};
    }
    state_.autoscaler.begin();
    state_.set_limit(state_.workers.limit());
    const std::error_code error = start_background(state_.autoscaler, bodies_.autoscaler);
    if (error) state_.set_limit(state_.slots.capacity());
    return error;
  }
  const std::error_code error = start_worker();
  if (!error && options_->grow.kind() == GrowPolicy::Kind::eager) {
    // One worker is enough for the task, so submit() succeeds even if more workers cannot be
    // started.
    while (!state_.closed && state_.workers.live() < state_.slots.capacity() && !start_worker()) {
    }
  }
  return error;
}

std::error_code PoolCore::start_worker() noexcept {
  state_.workers.begin_start();
  const std::error_code error = spawn_user(bodies_.worker);
  if (error) {
    state_.workers.fail_start();
    run_stranded_tasks();
  }
  return error;
}

std::error_code PoolCore::start_background(BackgroundFiber& fiber,
                                           BackgroundFiber::Body body) noexcept {
  fiber.begin();
  const std::error_code error = spawn_user(body);
  if (error) {
    fiber.end();
    run_stranded_tasks();
  }
  return error;
}

std::error_code PoolCore::spawn_user(BackgroundFiber::Body body) noexcept {
  std::error_code error;
  ++state_.users;
  lock_.unlock();
  try {
    const auto run = [this, body] {
      // The fiber sets its name itself, because a name in SpawnOptions would allocate.
      this_fiber::set_name(options_->name.empty() ? std::string_view("pool") : options_->name);
      body(*this);
    };
    detail::spawn(detail::Task(run), {.stack_size = options_->stack_size});
  } catch (const std::system_error& refusal) {
    error = refusal.code();
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  lock_.lock();
  if (error) --state_.users;
  return error;
}

void PoolCore::run_stranded_tasks() noexcept {
  bool has_task = true;
  while (has_task && state_.workers.live() == 0 && !state_.paused && !state_.waits_at_parent) {
    PoolItem item;
    PoolWorker self;
    state_.workers.reacquire();
    // depart() counts the caller as a starting worker. Without one, admit_blocked() may be unable
    // to admit a task to a sub-pool.
    state_.workers.depart();
    state_.admit_blocked(self.effects);
    state_.workers.arrive_again();
    has_task = state_.take(item, 0, self.effects);
    if (has_task) {
      self.number = state_.left_queue();
      unlock(self.effects);
      bodies_.stranded(*this, item, self);
      lock_.lock();
      end_task(self, item);
    }
    state_.workers.release();
    unlock(self.effects);
    lock_.lock();
  }
  Effects effects;
  state_.return_slots(effects);
  state_.call_workers(effects);
  state_.tell(effects);
  unlock(effects);
  lock_.lock();
}

// ---- Slots that tasks give back while they wait

void PoolCore::reacquire_slots(std::size_t weight) noexcept {
  lock_.lock();
  if (state_.must_wait_for_slots(weight)) {
    Waiter self;
    self.amount = weight;
    if (weight > 1) state_.slots.reserve(weight);
    detail::wait_in(state_.waiters.reacquiring, lock_, self, detail::WaitReason::pool_wait);
    return;
  }
  state_.reacquire(weight);
  Effects effects;
  state_.workers.retire_surplus(effects);
  unlock(effects);
}

bool PoolCore::lend_slot(PoolItem& item, std::uint64_t& number) noexcept {
  runner_.stamp(item);
  const detail::SpinGuard guard(lock_);
  if (!state_.may_lend_slot()) return false;
  for (PoolCore* around = parent_; around != nullptr; around = around->parent_) {
    const PoolState& state = around->shared_state();
    if (state.paused || state.workers.has_surplus()) return false;
  }
  number = state_.lend_slot();
  return true;
}

void PoolCore::run_in_lent_slot(PoolItem& item, std::uint64_t number) noexcept {
  PoolWorker self;
  self.number = number;
  runner_.run(item, self);
  lock_.lock();
  (void)end_job(*std::exchange(item.job, nullptr), self);
  runner_.record(self);
  state_.end_loan(self.outcome);
  state_.tell(self.effects);
  unlock(self.effects);
}

// ---- Calls of the pool's fibers

void PoolCore::sleep(BackgroundFiber& fiber, Deadline until) noexcept {
  Waiter self;
  (void)detail::wait_in_until(fiber.sleeping(), lock_, self, detail::WaitReason::sleep, until);
  lock_.lock();
}

void PoolCore::unlock_and_leave() noexcept {
  Effects effects;
  WEFT_INVARIANT(state_.users > 0, "PoolState I5: a fiber of the pool is counted");
  --state_.users;
  state_.tell(effects);
  unlock(effects);
}

}  // namespace weft::pool
