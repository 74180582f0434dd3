// Provides a handle that waits for a task in a pool, or cancels the task.
#pragma once

#include <concepts>
#include <utility>
#include <weft/detail/pool_job.hpp>
#include <weft/until.hpp>

namespace weft {

namespace detail {
class PoolEntry;
}  // namespace detail

// Refers to a task that FiberPool::async() started. If the handle is destroyed, the task continues.
// If a waiter is a task of the same pool, it frees its slot meanwhile (release_when_blocked). It
// continues only when it has a slot again, which may be after the deadline.
// Context: fibers and plain threads; waits and get() park. ready(), waits and cancel() may be
// called concurrently; no other call may run during get(), a move or the destructor.
// Ordering: the end of the task synchronizes with the return of calls that wait for it.
template <class R>
class PoolTask {
 public:
  PoolTask() noexcept = default;
  // Takes the task of `other`, which is then empty.
  PoolTask(PoolTask&& other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
  // Exchanges the handles' tasks; the destructor of `other` then abandons the previous task.
  PoolTask& operator=(PoolTask&& other) noexcept {
    std::swap(job_, other.job_);
    return *this;
  }
  // Drops the result; the task continues. If the task throws later, the pool calls on_exception.
  ~PoolTask() {
    if (job_ != nullptr) job_->release_reference();
  }

  // Returns whether the handle has a task. It has none if it was default-constructed, after get(),
  // and after a new handle took its task. All other calls except job() require valid().
  [[nodiscard]] bool valid() const noexcept { return job_ != nullptr; }
  // Returns whether the task has ended or was cancelled. If so, waits do not park.
  [[nodiscard]] bool ready() const noexcept { return job_->ready(); }
  // Parks until ready() returns true.
  void wait() const noexcept { (void)job_->wait_until({}); }
  // Waits as wait() does; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) const noexcept {
    return job_->wait_until(until);
  }
  // Waits for the task and returns its result; the handle is then invalid.
  // Throws: what the task or a move of its result throws; std::errc::operation_canceled, timed_out.
  R get() {
    wait();
    const PoolTask last(std::move(*this));
    return last.job_->take();
  }
  // If the task has not begun, prevents it from running and returns true; its waiters continue at
  // once. The task stays in the queue until it would have started, and only then does
  // PoolStats::cancelled count it. If the task has begun, returns false; a task that takes a stop
  // token gets a stop request.
  bool cancel() noexcept { return job_->cancel(); }

  // Returns the job on which a select waits; null for an invalid handle.
  [[nodiscard]] detail::PoolJob* job() const noexcept { return job_; }

 private:
  friend class detail::PoolEntry;
  explicit PoolTask(detail::PoolOutcome<R>* job) noexcept : job_(job) {}

  detail::PoolOutcome<R>* job_ = nullptr;
};

// Makes a select case that is ready once the task has ended or been cancelled. With an invalid
// handle, the case is never ready. A task of the same pool frees its slot while its select waits.
// Context, Throws: the same as for on_stop().
template <class R, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_done(PoolTask<R>& task, Handler handler = {}) {
  return detail::PoolCase<Handler>(task.job(), std::move(handler));
}

}  // namespace weft
