#include "pool/core/task_runner.hpp"

#include <utility>
#include <weft/this_fiber.hpp>

#include "pool/core/reports.hpp"

namespace weft::pool {

using Outcome = detail::PoolJob::Outcome;

void TaskRunner::run_any(detail::PoolItem& item, PoolWorker& self) const noexcept {
  // If a trace begins while the task runs, that trace has no event of this task. If a trace ends
  // while the task runs, that trace has only the task's first event.
  const bool is_traced = detail::is_tracing();
  if (is_traced) detail::trace_text(detail::TraceKind::pool_start, options_.name);
  self.lap.submitted = item.submitted_at;
  if (is_measuring()) self.lap.started = Deadline::now_nanoseconds();
  item.job != nullptr ? run_job(*item.job, self) : run_plain(item, self);
  if (is_measuring()) self.lap.ended = Deadline::now_nanoseconds();
  if (is_traced) detail::trace_text(detail::TraceKind::pool_end, options_.name);
}

void TaskRunner::run_job(detail::PoolJob& job, PoolWorker& self) const noexcept {
  self.outcome = job.execute();
  if (job.is_unwatched()) report_lost(job, self);
}

// Must not be called inside a catch block, because the function calls `on_exception`, which may
// park.
void TaskRunner::report_plain(const detail::PoolItem& item, PoolWorker& self) const noexcept {
  self.outcome = Outcome::failed;
  report({std::exchange(self.thrown, nullptr), item.task.type_hint()}, self);
}

void TaskRunner::report_lost(detail::PoolJob& job, const PoolWorker& self) const noexcept {
  if (self.outcome == Outcome::failed) report(job.take_exception(), self);
}

void TaskRunner::report(const detail::PoolJob::Thrown& thrown,
                        const PoolWorker& self) const noexcept {
  if (!thrown.exception) return;
  pool::report(options_, thrown.exception,
               {.pool = options_.name,
                .number = self.number,
                .type = thrown.type,
                .fiber = this_fiber::id()});
}

}  // namespace weft::pool
