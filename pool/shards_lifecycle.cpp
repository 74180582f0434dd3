// Shards as one pool: their size, pauses, end and numbers.
#include <algorithm>
#include <system_error>
#include <utility>

#include "pool/pool_core.hpp"
#include "pool/registry.hpp"
#include "pool/shards.hpp"

namespace weft::pool {

using detail::relaxed;
using detail::Waiter;

void Shards::close(Close mode) noexcept {
  lock_.lock();
  closed_ = true;
  ++room_made_;
  pause_wanted_ = false;
  Waiter* const blocked = line_.claim_all();
  std::size_t count = 0;
  for (const Waiter* waiter = blocked; waiter != nullptr; waiter = waiter->next) ++count;
  in_line_ -= count;
  note_line();
  lock_.unlock();
  waiting_.fetch_sub(count, relaxed);
  for (std::size_t i = 0; i < count; ++i) (void)refuse(Errc::closed);
  detail::wake_chain(blocked);
  // The first one last: its token is everybody's, and its close the last access to this object.
  for (std::size_t i = cores_.size(); i > 0; --i) cores_[i - 1]->close(mode);
}

bool Shards::reopen() {
  lock_.lock();
  const bool was_closed = std::exchange(closed_, false);
  ++room_made_;
  lock_.unlock();
  for (auto& core : cores_) (void)core->reopen();
  even_out();
  return was_closed;
}

void Shards::resize(std::size_t capacity) noexcept {
  lock_.lock();
  capacity_ = capacity;
  lock_.unlock();
  for (auto& core : cores_) core->follow_size();
  even_out();
}

std::size_t Shards::wanted_capacity_of(std::size_t shard) noexcept {
  lock_.lock();
  const std::size_t wanted = share(capacity_, shard);
  lock_.unlock();
  return wanted;
}

std::size_t Shards::capacity() noexcept {
  lock_.lock();
  const std::size_t capacity = capacity_;
  lock_.unlock();
  return capacity;
}

std::size_t Shards::available() noexcept {
  std::size_t sum = 0;
  for (auto& core : cores_) {
    const std::size_t more = core->available();
    sum = more > kUnlimited - sum ? kUnlimited : sum + more;
  }
  return sum;
}

void Shards::pause() noexcept {
  lock_.lock();
  pause_wanted_ = !closed_;
  lock_.unlock();
  for (auto& core : cores_) core->follow_pause();
}

void Shards::resume() noexcept {
  lock_.lock();
  pause_wanted_ = false;
  lock_.unlock();
  for (auto& core : cores_) core->follow_pause();
  even_out();
}

bool Shards::pause_is_wanted() noexcept {
  lock_.lock();
  const bool wanted = pause_wanted_;
  lock_.unlock();
  return wanted;
}

bool Shards::close_is_wanted() noexcept {
  lock_.lock();
  const bool wanted = closed_;
  lock_.unlock();
  return wanted;
}

void Shards::refuse_own_tasks() const {
  const Registration* entry = Registration::of_caller();
  if (entry != nullptr && &entry->core().family() == cores_.front().get()) {
    throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                            "weft::FiberPool: a task cannot wait for its own pool");
  }
}

// All are quiet at one moment. Until then the caller waits for one that is not.
bool Shards::wait_idle_until(const Until& until) {
  refuse_own_tasks();
  for (;;) {
    lock_all();
    const auto busy = std::find_if(cores_.begin(), cores_.end(),
                                   [](auto& core) { return !core->is_quiet_now(); });
    if (busy == cores_.end()) {
      unlock_all();
      return true;
    }
    for (auto core = cores_.begin(); core != cores_.end(); ++core) {
      if (core != busy) (*core)->unlock();
    }
    if (!(*busy)->wait_quiet_and_unlock(until)) return false;
  }
}

// One after the other: what is still stays so during a pause.
bool Shards::wait_paused_until(const Until& until) {
  refuse_own_tasks();
  return std::all_of(cores_.begin(), cores_.end(),
                     [&](auto& core) { return core->wait_paused_until(until); });
}

bool Shards::join_until(const Until& until) {
  refuse_own_tasks();
  return std::all_of(cores_.begin(), cores_.end(),
                     [&](auto& core) { return core->join_until(until); });
}

PoolTimings Shards::timings() noexcept {
  TimingBook sum;
  for (auto& core : cores_) core->add_timings_to(sum);
  return sum.read();
}

PoolStats Shards::stats() noexcept {
  PoolStats sum;
  for (auto& core : cores_) {
    const PoolStats part = core->stats();
    sum.live += part.live;
    sum.busy += part.busy;
    sum.idle += part.idle;
    sum.lent += part.lent;
    sum.in_callers += part.in_callers;
    sum.queued += part.queued;
    sum.blocked += part.blocked;
    sum.submitted += part.submitted;
    sum.completed += part.completed;
    sum.failed += part.failed;
    sum.cancelled += part.cancelled;
    sum.rejected += part.rejected;
    sum.started += part.started;
    sum.retired += part.retired;
  }
  lock_.lock();
  sum.blocked += in_line_;
  lock_.unlock();
  return sum;
}

}  // namespace weft::pool
