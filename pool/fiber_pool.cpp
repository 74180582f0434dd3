#include <stdexcept>
#include <stop_token>
#include <utility>
#include <weft/pool.hpp>

#include "pool/options.hpp"
#include "pool/pool_core.hpp"
#include "pool/shards.hpp"

namespace weft {

FiberPool::FiberPool(PoolOptions options)
    : shards_(make_shards(options)),
      own_core_(make_core(options)),
      core_(shards_ != nullptr ? &shards_->first() : own_core_.get()),
      family_(&core_->family()) {
  if (const std::error_code error = start()) {
    close(Close::discard);
    join();
    check(error);
  }
  outer_stop_.add(core_->options().stop, CloseOnStop{this});
}

std::unique_ptr<pool::Shards> FiberPool::make_shards(PoolOptions& options) {
  options = pool::checked(std::move(options));
  if (options.parent != nullptr && options.parent->shards_ != nullptr) {
    throw std::invalid_argument("weft::PoolOptions: parent must be a pool without shards");
  }
  return options.shards == 1 ? nullptr : std::make_unique<pool::Shards>(options);
}

std::unique_ptr<pool::PoolCore> FiberPool::make_core(PoolOptions& options) const {
  if (shards_ != nullptr) return nullptr;
  pool::PoolCore* const host = options.parent == nullptr ? nullptr : options.parent->core_;
  return std::make_unique<pool::PoolCore>(std::move(options), pool::Place{.host = host});
}

std::error_code FiberPool::start() {
  return shards_ != nullptr ? shards_->start() : core_->start();
}

template <class Call>
decltype(auto) FiberPool::with_either(Call call) const {
  return shards_ != nullptr ? call(*shards_) : call(*core_);
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
  const detail::SlotLoan loan(family_);
  return wait(until);
}

FiberPool::~FiberPool() {
  close(Close::drain);
  join();
}

std::error_code FiberPool::enqueue(detail::PoolItem item, const Until& until) {
  if (shards_ != nullptr) return shards_->submit(item, core_->options().on_full, until);
  return core_->submit(item, core_->options().on_full, until);
}
std::error_code FiberPool::try_enqueue(detail::PoolItem item) {
  if (shards_ != nullptr) return shards_->submit(item, OnFull::reject, {});
  return core_->submit(item, OnFull::reject, {});
}
std::error_code FiberPool::enqueue_until(detail::PoolItem item, const Until& until) {
  if (shards_ != nullptr) return shards_->submit(item, OnFull::block, until);
  return core_->submit(item, OnFull::block, until);
}

std::size_t FiberPool::enqueue_bulk(detail::PoolBatch& batch) {
  const std::size_t accepted =
      with_either([&](auto& pool) { return pool.submit_bulk(batch.items()); });
  batch.clear();
  return accepted;
}

detail::TermedTask& FiberPool::take_spare_task() { return core_->take_spare_task(); }

void FiberPool::resize(std::size_t capacity) {
  if (capacity == 0) throw std::invalid_argument("weft::FiberPool: capacity must be at least 1");
  if (capacity < core_->options().shards) {
    throw std::invalid_argument("weft::FiberPool: capacity must be at least shards");
  }
  if (capacity == kUnlimited && core_->options().grow.kind() == GrowPolicy::Kind::eager) {
    throw std::invalid_argument("weft::FiberPool: capacity must be limited with grow: eager");
  }
  with_either([&](auto& pool) { pool.resize(capacity); });
}

void FiberPool::reopen() {
  const bool was_closed = with_either([](auto& pool) { return pool.reopen(); });
  // After the fact: a request that comes from now on closes the pool itself.
  if (core_->options().stop.stop_requested()) return close(Close::cancel);
  if (was_closed) check(start());
}
void FiberPool::CloseOnStop::operator()() noexcept { pool->close(Close::cancel); }

void FiberPool::pause() noexcept {
  with_either([](auto& pool) { pool.pause(); });
}
void FiberPool::resume() noexcept {
  with_either([](auto& pool) { pool.resume(); });
}
bool FiberPool::is_paused() const noexcept { return core_->is_paused(); }
void FiberPool::close(Close mode) noexcept {
  with_either([&](auto& pool) { pool.close(mode); });
}
std::size_t FiberPool::capacity() const noexcept {
  return with_either([](auto& pool) { return pool.capacity(); });
}
std::size_t FiberPool::available() const noexcept {
  return with_either([](auto& pool) { return pool.available(); });
}
std::stop_token FiberPool::stop_token() const noexcept { return core_->stop_token(); }
bool FiberPool::is_closed() const noexcept { return core_->is_closed(); }
PoolStats FiberPool::stats() const noexcept {
  return with_either([](auto& pool) { return pool.stats(); });
}
PoolTimings FiberPool::timings() const noexcept {
  return with_either([](auto& pool) { return pool.timings(); });
}

// A task of the same family, though not of this pool, lends its slots while it waits.
bool FiberPool::wait_paused_until(const Until& until) {
  return wait_as_kin(until, [this](const Until& limit) {
    return with_either([&](auto& pool) { return pool.wait_paused_until(limit); });
  });
}
bool FiberPool::wait_idle_until(const Until& until) {
  return wait_as_kin(until, [this](const Until& limit) {
    return with_either([&](auto& pool) { return pool.wait_idle_until(limit); });
  });
}
bool FiberPool::wait_for_completed(std::uint64_t count, const Until& until) {
  if (shards_ != nullptr) {
    throw std::system_error(std::make_error_code(std::errc::operation_not_supported),
                            "weft::FiberPool: wait_for_completed with shards");
  }
  return wait_as_kin(
      until, [this, count](const Until& limit) { return core_->wait_for_completed(count, limit); });
}
bool FiberPool::join_until(const Until& until) {
  return wait_as_kin(until, [this](const Until& limit) {
    return with_either([&](auto& pool) { return pool.join_until(limit); });
  });
}

}  // namespace weft
