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

void report_thrown(const PoolOptions& options, const std::exception_ptr& exception,
                   std::uint64_t number, const std::type_info* type) noexcept {
  report(options, exception,
         {.pool = options.name, .number = number, .type = type, .fiber = this_fiber::id()});
}

void report_thrown_by(const PoolOptions& options, detail::PoolJob& job,
                      std::uint64_t number) noexcept {
  const auto [exception, type] = job.take_exception();
  if (exception) report_thrown(options, exception, number, type);
}

Outcome run(const PoolOptions& options, PoolItem& item, std::uint64_t number) noexcept {
  if (detail::PoolJob* const job = item.job) {
    const Outcome outcome = job->execute();
    if (outcome == Outcome::failed && job->is_unwatched()) report_thrown_by(options, *job, number);
    return outcome;
  }
  std::exception_ptr exception;
  WEFT_TRY {
    item.task.run();
    return Outcome::completed;
  }
  WEFT_CATCH_ALL { exception = std::current_exception(); }
  // Not inside the catch block: on_exception may park.
  report_thrown(options, exception, number, item.task.type_hint());
  return Outcome::failed;
}

}  // namespace

inline void PoolCore::execute_untraced(PoolItem& item, Worker& self) noexcept {
  if (timings_ == nullptr) [[likely]] {
    self.outcome = run(*options_, item, self.number);
    return;
  }
  self.lap.submitted = item.submitted_at;
  self.lap.started = Deadline::now_nanoseconds();
  self.outcome = run(*options_, item, self.number);
  self.lap.ended = Deadline::now_nanoseconds();
}

void PoolCore::execute(PoolItem& item, Worker& self) noexcept {
  if (detail::is_tracing()) [[unlikely]]
    return execute_traced(item, self);
  execute_untraced(item, self);
}

// A trace that begins or ends meanwhile has one of the two.
void PoolCore::execute_traced(PoolItem& item, Worker& self) noexcept {
  detail::trace_text(detail::TraceKind::pool_start, options_->name);
  execute_untraced(item, self);
  detail::trace_text(detail::TraceKind::pool_end, options_->name);
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

void PoolCore::report_lost(detail::PoolJob& job, const Worker& self) const noexcept {
  if (self.outcome == Outcome::failed) report_thrown_by(*options_, job, self.number);
}

}  // namespace weft::pool
