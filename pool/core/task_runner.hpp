// Runs a task, measures it, and reports its exception.
#pragma once

#include <exception>
#include <memory>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/trace_event.hpp>

#include "pool/core/timing_book.hpp"
#include "pool/core/worker_set.hpp"

namespace weft::pool {

// Runs the tasks of a pool, for any worker and without the pool's lock. The lock guards the
// measurements: record() and timings().
class TaskRunner {
 public:
  // `options` outlive it. Throws std::bad_alloc.
  explicit TaskRunner(const PoolOptions& options)
      : options_(options), book_(options.timings ? std::make_unique<TimingBook>() : nullptr) {}

  // Returns whether the clock is read for each task.
  [[nodiscard]] bool is_measuring() const noexcept { return book_ != nullptr; }
  // Records when an item is submitted, if that is measured and has not been recorded yet.
  void stamp(detail::PoolItem& item) const noexcept {
    if (is_measuring() && item.submitted_at == 0) item.submitted_at = book_->stamp_submit();
  }
  // Stores the outcome and the times of the task in the worker.
  void run(detail::PoolItem& item, Worker& self) const noexcept;
  // Reports an exception of a job whose handle was dropped.
  void report_lost(detail::PoolJob& job, const Worker& self) const noexcept;
  // Records the times of the worker's last task.
  void record(const Worker& self) noexcept {
    if (is_measuring()) [[unlikely]]
      book_->record(self.lap, self.outcome);
  }
  [[nodiscard]] PoolTimings timings() const noexcept {
    return is_measuring() ? book_->read() : PoolTimings();
  }

 private:
  void run_plain(detail::PoolItem& item, Worker& self) const noexcept;
  void run_job(detail::PoolJob& job, Worker& self) const noexcept;
  // Runs a task of either kind; also handles measurement and tracing.
  void run_any(detail::PoolItem& item, Worker& self) const noexcept;
  [[gnu::cold]] void report_plain(const detail::PoolItem& item, Worker& self) const noexcept;
  void report(const detail::PoolJob::Thrown& thrown, const Worker& self) const noexcept;

  const PoolOptions& options_;
  const std::unique_ptr<TimingBook> book_;
};

inline void TaskRunner::run(detail::PoolItem& item, Worker& self) const noexcept {
  const bool is_plain = item.job == nullptr && !is_measuring() && !detail::is_tracing();
  is_plain ? run_plain(item, self) : run_any(item, self);
}

inline void TaskRunner::run_plain(detail::PoolItem& item, Worker& self) const noexcept {
  WEFT_TRY {
    item.task.run();
    self.outcome = detail::PoolJob::Outcome::completed;
    return;
  }
  WEFT_CATCH_ALL { self.thrown = std::current_exception(); }
  report_plain(item, self);
}

}  // namespace weft::pool
