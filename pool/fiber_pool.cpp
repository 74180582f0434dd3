#include <stdexcept>
#include <stop_token>
#include <utility>
#include <weft/pool.hpp>

#include "pool/options.hpp"
#include "pool/pool_core.hpp"

namespace weft {

FiberPool::FiberPool(PoolOptions options)
    : core_([&] {
        options = pool::checked(std::move(options));
        pool::PoolCore* const parent =
            options.parent == nullptr ? nullptr : options.parent->core_.get();
        return std::make_unique<pool::PoolCore>(std::move(options), parent);
      }()) {
  if (const std::error_code error = core_->start()) {
    close(Close::discard);
    join();
    check(error);
  }
  outer_stop_.add(core_->options().stop, CloseOnStop{this});
}

// Who does not have to wait lends nothing. The first look must not park, as it would to let a
// deadline pass: what ended meanwhile, a pause say, would be missed by the wait proper.
template <class Wait>
bool FiberPool::wait_as_kin(const Until& until, Wait wait) const {
  static const std::stop_token at_once = [] {
    std::stop_source source;
    source.request_stop();
    return source.get_token();
  }();
  if (wait(at_once)) return true;
  const detail::SlotLoan loan(&core_->family());
  return wait(until);
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

std::size_t FiberPool::enqueue_bulk(detail::PoolBatch& batch) {
  const std::size_t accepted = core_->submit_bulk(batch.items());
  batch.clear();
  return accepted;
}

detail::TermedTask& FiberPool::take_spare_task() { return core_->take_spare_task(); }

void FiberPool::resize(std::size_t capacity) {
  if (capacity == 0) throw std::invalid_argument("weft::FiberPool: capacity must be at least 1");
  if (capacity == kUnlimited && core_->options().grow.kind() == GrowPolicy::Kind::eager) {
    throw std::invalid_argument("weft::FiberPool: capacity must be limited with grow: eager");
  }
  core_->resize(capacity);
}

void FiberPool::reopen() {
  const bool was_closed = core_->reopen();
  // After the fact: a request that comes from now on closes the pool itself.
  if (core_->options().stop.stop_requested()) return close(Close::cancel);
  if (was_closed) check(core_->start());
}
void FiberPool::CloseOnStop::operator()() noexcept { pool->close(Close::cancel); }

void FiberPool::pause() noexcept { core_->pause(); }
void FiberPool::resume() noexcept { core_->resume(); }
bool FiberPool::is_paused() const noexcept { return core_->is_paused(); }
void FiberPool::close(Close mode) noexcept { core_->close(mode); }
std::size_t FiberPool::capacity() const noexcept { return core_->capacity(); }
std::size_t FiberPool::available() const noexcept { return core_->available(); }
std::stop_token FiberPool::stop_token() const noexcept { return core_->stop_token(); }
bool FiberPool::is_closed() const noexcept { return core_->is_closed(); }
PoolStats FiberPool::stats() const noexcept { return core_->stats(); }
PoolTimings FiberPool::timings() const noexcept { return core_->timings(); }

// A task of the same family, though not of this pool, lends its slots while it waits.
bool FiberPool::wait_paused_until(const Until& until) {
  return wait_as_kin(until, [this](const Until& limit) { return core_->wait_paused_until(limit); });
}
bool FiberPool::wait_idle_until(const Until& until) {
  return wait_as_kin(until, [this](const Until& limit) { return core_->wait_idle_until(limit); });
}
bool FiberPool::wait_for_completed(std::uint64_t count, const Until& until) {
  return wait_as_kin(
      until, [this, count](const Until& limit) { return core_->wait_for_completed(count, limit); });
}
bool FiberPool::join_until(const Until& until) {
  return wait_as_kin(until, [this](const Until& limit) { return core_->join_until(limit); });
}

const pool::PoolCore* FiberPool::lends_to() const noexcept { return &core_->family(); }

}  // namespace weft
