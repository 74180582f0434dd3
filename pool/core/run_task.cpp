// A task runs, ends, and is reported if it threw.
#include <exception>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/trace_event.hpp>
#include <weft/this_fiber.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/core/reports.hpp"

namespace weft::pool {

using detail::PoolItem;
using Outcome = detail::PoolJob::Outcome;

namespace {

// Jobs kept for later submits with options; more are freed.
constexpr std::size_t kSpares = 256;

}  // namespace

void PoolCore::execute_any(PoolItem& item, Worker& self) noexcept {
  // A trace that begins or ends meanwhile has none or both of the two.
  const bool is_traced = detail::is_tracing();
  if (is_traced) detail::trace_text(detail::TraceKind::pool_start, options_->name);
  self.lap.submitted = item.submitted_at;
  if (timings_ != nullptr) self.lap.started = Deadline::now_nanoseconds();
  item.job != nullptr ? execute_job(*item.job, self) : execute_plain(item, self);
  if (timings_ != nullptr) self.lap.ended = Deadline::now_nanoseconds();
  if (is_traced) detail::trace_text(detail::TraceKind::pool_end, options_->name);
}

void PoolCore::execute_job(detail::PoolJob& job, Worker& self) const noexcept {
  self.outcome = job.execute();
  if (job.is_unwatched()) report_lost(job, self);
}

// A handler may park, so none is called where the exception is caught.
void PoolCore::report_plain(const PoolItem& item, Worker& self) const noexcept {
  self.outcome = Outcome::failed;
  report_thrown({std::exchange(self.thrown, nullptr), item.task.type_hint()}, self);
}

void PoolCore::report_lost(detail::PoolJob& job, const Worker& self) const noexcept {
  if (self.outcome == Outcome::failed) report_thrown(job.take_exception(), self);
}

void PoolCore::report_thrown(const detail::PoolJob::Thrown& thrown,
                             const Worker& self) const noexcept {
  if (!thrown.exception) return;
  report(*options_, thrown.exception,
         {.pool = options_->name,
          .number = self.number,
          .type = thrown.type,
          .fiber = this_fiber::id()});
}

void PoolCore::end_task(Worker& self, PoolItem& item) noexcept {
  std::size_t weight = 1;
  self.freed_more = false;
  if (item.job != nullptr) [[unlikely]] {
    self.freed_more = item.job->attributes() != nullptr;
    weight = end_job(*std::exchange(item.job, nullptr), self);
  }
  end_slots(self, weight);
}

void PoolCore::end_slots(const Worker& self, std::size_t weight) noexcept {
  if (timings_ != nullptr) [[unlikely]]
    timings_->record(self.lap, self.outcome);
  state_.end(weight, self.outcome);
}

std::size_t PoolCore::end_job(detail::PoolJob& job, Worker& self) noexcept {
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
    report_lost(job, self);
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
  if (spare_count_ == kSpares || !attributes.job->make_reusable()) return false;
  attributes.next = std::exchange(spares_, &attributes);
  ++spare_count_;
  return true;
}

}  // namespace weft::pool
