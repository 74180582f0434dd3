#include <stdexcept>
#include <utility>
#include <weft/pool.hpp>

#include "pool/options.hpp"
#include "pool/pool_core.hpp"

namespace weft {

FiberPool::FiberPool(PoolOptions options)
    : core_(make_core(pool::checked(std::move(options)))), family_(&core_->family()) {
  if (const std::error_code error = core_->start()) {
    core_->close(Close::discard);
    (void)core_->join_until({});
    check(error);
  }
  outer_stop_.add(core_->options().stop, CloseOnStop{core_.get()});
}

std::unique_ptr<pool::PoolCore> FiberPool::make_core(PoolOptions options) {
  pool::PoolCore* const host = options.parent == nullptr ? nullptr : options.parent->core_.get();
  return std::make_unique<pool::PoolCore>(std::move(options), host);
}

FiberPool::~FiberPool() {
  close(Close::drain);
  join();
}

std::error_code FiberPool::enqueue(detail::PoolItem item, const Until& until) {
  return core_->submit(item, core_->options().on_full, until);
}
std::error_code FiberPool::try_enqueue(detail::PoolItem item) {
  return core_->submit(item, OnFull::reject, {});
}
std::error_code FiberPool::enqueue_until(detail::PoolItem item, const Until& until) {
  return core_->submit(item, OnFull::block, until);
}

detail::TermedTask& FiberPool::take_spare_task() { return core_->take_spare_task(); }

void FiberPool::resize(std::size_t capacity) {
  if (capacity == 0) throw std::invalid_argument("weft::FiberPool: capacity must be at least 1");
  core_->resize(capacity);
}

void FiberPool::reopen() {
  const bool was_closed = core_->reopen();
  // After the fact: a request that comes from now on closes the pool itself.
  if (core_->options().stop.stop_requested()) return core_->close(Close::cancel);
  if (was_closed) check(core_->start());
}
void FiberPool::CloseOnStop::operator()() noexcept { core->close(Close::cancel); }

void FiberPool::pause() noexcept { core_->pause(); }
void FiberPool::resume() noexcept { core_->resume(); }
bool FiberPool::is_paused() const noexcept { return core_->is_paused(); }
void FiberPool::close(Close mode) noexcept { core_->close(mode); }
std::size_t FiberPool::capacity() const noexcept { return core_->capacity(); }
std::size_t FiberPool::available() const noexcept { return core_->available(); }
std::stop_token FiberPool::stop_token() const noexcept { return core_->stop_token(); }
bool FiberPool::is_closed() const noexcept { return core_->is_closed(); }
PoolStats FiberPool::stats() const noexcept { return core_->stats(); }

// A task of the same family, though not of this pool, lends its slots while it waits.
bool FiberPool::wait_paused_until(const Until& until) {
  if (core_->wait_paused_until(Deadline::past())) return true;
  const detail::SlotLoan loan(family_);
  return core_->wait_paused_until(until);
}
bool FiberPool::wait_idle_until(const Until& until) {
  if (core_->wait_idle_until(Deadline::past())) return true;
  const detail::SlotLoan loan(family_);
  return core_->wait_idle_until(until);
}
bool FiberPool::wait_for_completed(std::uint64_t count, const Until& until) {
  if (core_->wait_for_completed(count, Deadline::past())) return true;
  const detail::SlotLoan loan(family_);
  return core_->wait_for_completed(count, until);
}
bool FiberPool::join_until(const Until& until) {
  if (core_->join_until(Deadline::past())) return true;
  const detail::SlotLoan loan(family_);
  return core_->join_until(until);
}

}  // namespace weft
