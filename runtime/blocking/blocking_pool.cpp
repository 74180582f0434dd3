#include "runtime/blocking/blocking_pool.hpp"

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>
#include <weft/detail/fork.hpp>
#include <weft/detail/invariant.hpp>
#include <weft/detail/never_destroyed.hpp>
#include <weft/detail/simulated.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/thread.hpp"

namespace weft::runtime {

namespace {

// The pool that owns the calling helper thread. Not inlined, because fibers move between threads.
[[gnu::noinline]] const BlockingPool*& pool_of_thread() noexcept {
  thread_local const BlockingPool* pool = nullptr;
  return pool;
}

}  // namespace

// All pools, for fork handling.
class BlockingPools {
 public:
  void add(BlockingPool& pool) {
    const detail::Guard lock(mutex_);
    pools_.push_back(&pool);
  }
  void remove(BlockingPool& pool) noexcept {
    const detail::Guard lock(mutex_);
    std::erase(pools_, &pool);
  }

  // The analysis cannot follow a variable number of locks.
  void lock_all() noexcept WEFT_NOT_ANALYZED {
    mutex_.lock();
    for (BlockingPool* pool : pools_) {
      pool->starting_mutex_.lock();
      pool->mutex_.lock();
    }
  }
  void unlock_all() noexcept WEFT_NOT_ANALYZED {
    for (BlockingPool* pool : pools_) {
      pool->mutex_.unlock();
      pool->starting_mutex_.unlock();
    }
    mutex_.unlock();
  }
  void forget_helpers() noexcept WEFT_NOT_ANALYZED {
    for (BlockingPool* pool : pools_) pool->forget_all();
  }

 private:
  detail::ThreadMutex mutex_;
  std::vector<BlockingPool*> pools_ WEFT_GUARDED_BY(mutex_);
};

namespace {

// Not destroyed, because pools may end after other static objects.
constinit detail::NeverDestroyed<BlockingPools> blocking_pools;

const detail::ForkHandlers blocking_fork_handlers(
    detail::ForkHandlers::Locks::inner, [] { blocking_pools.get().lock_all(); },
    [] { blocking_pools.get().unlock_all(); },
    [] {
      blocking_pools.get().forget_helpers();
      blocking_pools.get().unlock_all();
    });

}  // namespace

BlockingPool::BlockingPool(std::size_t most, std::chrono::nanoseconds idle_time, std::string name)
    : most_(most), idle_time_(idle_time), name_(std::move(name)) {
  blocking_pools.get().add(*this);
}

void BlockingPool::forget_all() noexcept {
  // Threads that do not exist in the child can be neither joined nor destroyed.
  for (auto& helper : helpers_) (void)helper.release();
  helpers_.clear();
  (void)gone_.release();
  owed_ = free_ = 0;
  first_ = last_ = nullptr;
  idle_ = nullptr;
}

BlockingPool::~BlockingPool() {
  blocking_pools.get().remove(*this);
  std::vector<std::unique_ptr<Helper>> left;
  {
    const detail::Guard lock(mutex_);
    stopping_ = true;
    left.swap(helpers_);
  }
  for (const auto& helper : left) (void)helper->parker.unpark();
  for (const auto& helper : left) helper->thread.join();
  if (gone_ != nullptr) gone_->thread.join();
}

std::error_code BlockingPool::expect() noexcept {
  if (detail::is_simulated()) [[unlikely]]
    return {};
  {
    const detail::Guard lock(mutex_);
    ++owed_;
    if (owed_ <= free_ || helpers_.size() == most_) return {};
  }
  const detail::Guard starting(starting_mutex_);
  {
    const detail::Guard lock(mutex_);
    // Meanwhile other callers may have started helpers, or helpers may have become free.
    if (owed_ <= free_ || helpers_.size() == most_) return {};
  }
  const std::error_code refused = start_helper();
  if (!refused) return {};
  const detail::Guard lock(mutex_);
  if (!helpers_.empty()) return {};  // By I2 an existing helper makes the call later.
  --owed_;
  return refused;
}

std::error_code BlockingPool::start_helper() noexcept {
  try {
    {
      const detail::Guard lock(mutex_);
      // Only a start adds a helper, so the reserved room is still there at the end of this start.
      helpers_.reserve(helpers_.size() + 1);
    }
    auto owner = std::make_unique<Helper>();
    Helper& helper = *owner;
    helper.thread = std::thread([this, &helper, number = started_] {
      char name[32];
      (void)std::snprintf(name, sizeof name, "weft-%.16s-%llu", name_.c_str(),
                          static_cast<unsigned long long>(number));
      base::set_thread_name(name);
      pool_of_thread() = this;
      (void)helper.parker.park_until(Deadline::never());
      run(helper);
    });
    {
      const detail::Guard lock(mutex_);
      helpers_.push_back(std::move(owner));
      ++free_;
    }
    ++started_;
    (void)helper.parker.unpark();  // Only now do other threads see the helper.
    return {};
  } catch (const std::system_error& refusal) {
    return refusal.code();
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
}

// In a simulation the caller's fiber acts as the helper: the call takes no simulated time.
void BlockingPool::submit(detail::BlockingCall& call) noexcept {
  if (detail::is_simulated()) [[unlikely]]
    return call.make(call);
  Helper* called = nullptr;
  {
    const detail::Guard lock(mutex_);
    WEFT_INVARIANT(!helpers_.empty() && owed_ > 0,
                   "BlockingPool I2: while a call is owed there is a helper");
    call.next = nullptr;
    call.previous = last_;
    (first_ == nullptr ? first_ : last_->next) = &call;
    last_ = &call;
    called = idle_;
    if (called != nullptr) {
      WEFT_INVARIANT(called->idle, "BlockingPool I3: a helper on the idle stack waits");
      idle_ = called->next_idle;
      called->idle = false;
    }
  }
  if (called != nullptr) (void)called->parker.unpark();
}

bool BlockingPool::withdraw(detail::BlockingCall& call) noexcept {
  const detail::Guard lock(mutex_);
  // Neither the first call nor a call that has left the queue has a predecessor.
  if (&call != first_ && call.previous == nullptr) return false;
  unlink(call);
  return true;
}

// Removes a pending call from the queue.
void BlockingPool::unlink(detail::BlockingCall& call) noexcept {
  (call.previous == nullptr ? first_ : call.previous->next) = call.next;
  (call.next == nullptr ? last_ : call.next->previous) = call.previous;
  call.previous = nullptr;
  --owed_;
}

void BlockingPool::run(Helper& self) noexcept {
  while (detail::BlockingCall* call = next_call(self)) {
    // The waker is read first, because a call without a waker may free itself.
    const detail::Waker waker = call->waker;
    call->make(*call);
    // The fiber that continues destroys the call.
    if (waker) detail::wake(waker);
    const detail::Guard lock(mutex_);
    ++free_;
  }
}

// Returns the next call, or null if the helper has left.
detail::BlockingCall* BlockingPool::next_call(Helper& self) noexcept {
  mutex_.lock();
  for (bool told = true;;) {
    if (first_ != nullptr) {
      detail::BlockingCall* call = first_;
      unlink(*call);
      --free_;
      mutex_.unlock();
      return call;
    }
    if (stopping_) {
      mutex_.unlock();
      return nullptr;
    }
    if (!told && owed_ < free_) {
      leave(self);
      return nullptr;
    }
    self.idle = true;
    self.next_idle = std::exchange(idle_, &self);
    mutex_.unlock();
    told = self.parker.park_until(Deadline::after(idle_time_));
    mutex_.lock();
    if (told) continue;
    if (self.idle) {
      remove_idle(self);
    } else {
      // A caller has just taken this helper off the stack: the caller's unpark must not go to a
      // helper that is gone (I3).
      mutex_.unlock();
      told = self.parker.park_until(Deadline::never());
      mutex_.lock();
    }
  }
}

// Joins the helper that left before, which has unlocked and is about to end.
void BlockingPool::leave(Helper& self) noexcept {
  WEFT_INVARIANT(owed_ < free_, "BlockingPool I1: a helper leaves only while others are free");
  WEFT_INVARIANT(free_ <= helpers_.size(), "BlockingPool I1: free_ counts helpers");
  --free_;
  const auto mine = std::find_if(helpers_.begin(), helpers_.end(),
                                 [&](const auto& helper) { return helper.get() == &self; });
  const auto before = std::exchange(gone_, std::move(*mine));
  helpers_.erase(mine);
  WEFT_INVARIANT(before == nullptr || before->thread.joinable(),
                 "BlockingPool I4: the helper that left before is not joined yet");
  mutex_.unlock();
  if (before != nullptr) before->thread.join();
}

void BlockingPool::remove_idle(Helper& helper) noexcept {
  Helper** place = &idle_;
  while (*place != &helper) place = &(*place)->next_idle;
  *place = helper.next_idle;
  helper.idle = false;
}

bool BlockingPool::runs_on_this_thread() const noexcept { return pool_of_thread() == this; }

std::size_t BlockingPool::size_hint() noexcept {
  const detail::Guard lock(mutex_);
  return helpers_.size();
}

std::size_t BlockingPool::idle_hint() noexcept {
  const detail::Guard lock(mutex_);
  std::size_t count = 0;
  for (const Helper* helper = idle_; helper != nullptr; helper = helper->next_idle) ++count;
  return count;
}

}  // namespace weft::runtime
