// Handles the end of a task.
#include <utility>

#include "pool/core/pool_core.hpp"

namespace weft::pool {

void PoolCore::end_task(PoolWorker& self, detail::PoolItem& item) noexcept {
  std::size_t weight = 1;
  self.freed_more = false;
  if (item.job != nullptr) [[unlikely]] {
    self.freed_more = item.job->attributes() != nullptr;
    weight = end_job(*std::exchange(item.job, nullptr), self);
  }
  end_slots(self, weight);
}

void PoolCore::end_slots(const PoolWorker& self, std::size_t weight) noexcept {
  runner_.record(self);
  state_.end(weight, self.outcome);
}

std::size_t PoolCore::end_job(detail::PoolJob& job, PoolWorker& self) noexcept {
  std::size_t weight = 1;
  if (detail::TaskAttributes* const attributes = job.attributes()) {
    weight = attributes->weight;
    if (end_attributes(*attributes)) return weight;
  }
  const detail::PoolJob::Settled settled = job.settle(self.outcome);
  self.effects.wake_all(settled.waiters);
  if (settled.is_unused) self.effects.destroy(job);
  if (settled.is_last) {
    lock_.unlock();
    runner_.report_lost(job, self);
    job.release_reference();
    lock_.lock();
  }
  return weight;
}

bool PoolCore::end_attributes(detail::TaskAttributes& attributes) noexcept {
  if (attributes.key.is_set()) {
    state_.queue.pass_on_key(attributes);
    state_.release_key(attributes.key);
  }
  return spares_.keep(attributes);
}

}  // namespace weft::pool
