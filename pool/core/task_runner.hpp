// Runs a task, measures it, and reports its exception.
#pragma once

#include <exception>
#include <memory>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/trace_event.hpp>

#include "pool/core/timing_book.hpp"
#include "pool/core/worker_set.hpp"

namespace weft::pool {

// Runs the tasks of a pool, without the pool's lock. Only record() and timings() require the lock,
// which guards the measurements.
class TaskRunner {
 public:
  // `options` must outlive the runner. Throws std::bad_alloc.
  explicit TaskRunner(const PoolOptions& options)
      : options_(options), book_(options.timings ? std::make_unique<TimingBook>() : nullptr) {}

  // Returns whether run() reads the clock for each task.
  [[nodiscard]] bool is_measuring() const noexcept { return book_ != nullptr; }
  // Stores the submission time in the item, if the pool measures times and the item has no
  // submission time yet.
  void stamp(detail::PoolItem& item) const noexcept {
    if (is_measuring() && item.submitted_at == 0) item.submitted_at = book_->stamp_submit();
  }
  // Runs the task, and stores its outcome and times in the worker's record.
  void run(detail::PoolItem& item, PoolWorker& self) const noexcept;
  // Reports an exception of a job whose handle was dropped.
  void report_lost(detail::PoolJob& job, const PoolWorker& self) const noexcept;
  // Adds the times of the worker's last task to the measurements.
  void record(const PoolWorker& self) noexcept {
    if (is_measuring()) [[unlikely]]
      book_->record(self.lap, self.outcome);
  }
  [[nodiscard]] PoolTimings timings() const noexcept {
    return is_measuring() ? book_->read() : PoolTimings();
  }

 private:
  void run_plain(detail::PoolItem& item, PoolWorker& self) const noexcept;
  void run_job(detail::PoolJob& job, PoolWorker& self) const noexcept;
  // Runs a plain task or a job, with measurement and tracing if these are on.
  void run_any(detail::PoolItem& item, PoolWorker& self) const noexcept;
  [[gnu::cold]] void report_plain(const detail::PoolItem& item, PoolWorker& self) const noexcept;
  void report(const detail::PoolJob::Thrown& thrown, const PoolWorker& self) const noexcept;

  const PoolOptions& options_;
  const std::unique_ptr<TimingBook> book_;
};

inline void TaskRunner::run(detail::PoolItem& item, PoolWorker& self) const noexcept {
  const bool is_plain = item.job == nullptr && !is_measuring() && !detail::is_tracing();
  is_plain ? run_plain(item, self) : run_any(item, self);
}

inline void TaskRunner::run_plain(detail::PoolItem& item, PoolWorker& self) const noexcept {
  WEFT_TRY {
    item.task.run();
    self.outcome = detail::PoolJob::Outcome::completed;
    return;
  }
  WEFT_CATCH_ALL { self.thrown = std::current_exception(); }
  report_plain(item, self);
}

}  // namespace weft::pool
