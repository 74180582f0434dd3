// The handle of a task of a pool.
#pragma once

#include <concepts>
#include <utility>
#include <weft/detail/pool_job.hpp>
#include <weft/until.hpp>

namespace weft {

namespace detail {
class PoolEntry;
}  // namespace detail

// The handle of a task of FiberPool::async(). If the handle is destroyed, the task continues. If a
// task of the same pool waits for it, that task frees its slot, and continues once it has a slot
// again, even after its deadline.
// Context: fibers and plain threads; wait(), its forms and get() park. Callers of ready(), waits
// and cancel() may be concurrent; get() and the destructor must be the only calls.
// Ordering: the end of the task synchronizes with the return of calls that wait for it.
template <class R>
class PoolTask {
 public:
  PoolTask() noexcept = default;
  // Takes the task of `other`, which is then empty.
  PoolTask(PoolTask&& other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
  // Exchanges the tasks: the destructor of `other` then gives up the previous task.
  PoolTask& operator=(PoolTask&& other) noexcept {
    std::swap(job_, other.job_);
    return *this;
  }
  // Gives up the task, which runs nevertheless; its result is dropped.
  ~PoolTask() {
    if (job_ != nullptr) job_->release_reference();
  }

  // Returns whether it has a task: false by default, after get() and after a move. All other calls
  // require valid().
  [[nodiscard]] bool valid() const noexcept { return job_ != nullptr; }
  // Returns whether the task has ended or was cancelled, so that waits do not park.
  [[nodiscard]] bool ready() const noexcept { return job_->ready(); }
  // Parks until ready().
  void wait() const noexcept { (void)job_->wait_until({}); }
  // Waits as wait() does; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) const noexcept {
    return job_->wait_until(until);
  }
  // Waits, then returns the task's result; the handle is then invalid.
  // Throws: the task's exception, or std::system_error (std::errc::operation_canceled, timed_out).
  R get() {
    wait();
    const PoolTask last(std::move(*this));
    return last.job_->take();
  }
  // Prevents the task from running if it has not begun, and returns true; its waiters continue at
  // once. The task keeps its place in the queue until its turn, and only then PoolStats::cancelled
  // counts it. If the task has begun, returns false; its token, if any, requests a stop, and the
  // task ends on its own.
  bool cancel() noexcept { return job_->cancel(); }

  // Returns the job, for a select; null for an invalid handle.
  [[nodiscard]] detail::PoolJob* job() const noexcept { return job_; }

 private:
  friend class detail::PoolEntry;
  explicit PoolTask(detail::PoolOutcome<R>* job) noexcept : job_(job) {}

  detail::PoolOutcome<R>* job_ = nullptr;
};

// A select case that is ready once the task has ended or was cancelled; never for an invalid
// handle. A task of the same pool frees its slot while the select waits.
// Context, Throws: as on_stop().
template <class R, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_done(PoolTask<R>& task, Handler handler = {}) {
  return detail::PoolCase<Handler>(task.job(), std::move(handler));
}

}  // namespace weft
