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

// The handle of a task started by FiberPool::async(). Dropping it lets the task go on alone.
// Several callers may call ready, wait and cancel at once; get() and the destructor only when no
// other call is going on. Make all calls from fibers and plain threads. A task of the same pool
// that waits gives its slot back, and goes on once it has one again, also if its deadline has
// passed. Calls park and throw where they say so; the end of the task synchronizes with the return
// of calls that wait for it.
template <class R>
class PoolTask {
 public:
  PoolTask() noexcept = default;
  // `other` is empty then.
  PoolTask(PoolTask&& other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
  // The two change places: what this one had goes when `other` does.
  PoolTask& operator=(PoolTask&& other) noexcept {
    std::swap(job_, other.job_);
    return *this;
  }
  // Forgets the task, which runs all the same; its result is dropped. Never parks.
  ~PoolTask() {
    if (job_ != nullptr) job_->release_reference();
  }

  // False for a default-made handle, after get(), and after being moved from. All other calls
  // require valid().
  [[nodiscard]] bool valid() const noexcept { return job_ != nullptr; }
  // True once the task has ended or was cancelled: waiting will not park. Never parks.
  [[nodiscard]] bool ready() const noexcept { return job_->ready(); }
  // Parks until ready(). The end of the task synchronizes with the return.
  void wait() const noexcept { (void)job_->wait_until({}); }
  // Returns false when `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) const noexcept {
    return job_->wait_until(until);
  }
  // Waits, then returns the task's result, or throws its exception; if it was cancelled,
  // std::system_error (std::errc::operation_canceled). The handle is invalid afterwards.
  R get() {
    wait();
    const PoolTask last(std::move(*this));
    return last.job_->take();
  }
  // Returns true if the task will never run: its waiters go on at once. A cancelled task keeps its
  // place in the queue until its turn comes, and is counted as cancelled then. Returns false if the
  // task has begun: its token, if it has taken one, requests a stop, and the task decides when to
  // end. Never parks.
  bool cancel() noexcept { return job_->cancel(); }

  // For a select; null for a handle that is not valid.
  [[nodiscard]] detail::PoolJob* job() const noexcept { return job_; }

 private:
  friend class detail::PoolEntry;
  explicit PoolTask(detail::PoolOutcome<R>* job) noexcept : job_(job) {}

  detail::PoolOutcome<R>* job_ = nullptr;
};

// A case of a select(): ready once the task has ended or was cancelled. Never, for a handle that is
// not valid. A task of the same pool gives its slot back while the select waits. Made by the caller
// of the select(), which alone parks and synchronizes; throws what moving `handler` throws.
template <class R, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_done(PoolTask<R>& task, Handler handler = {}) {
  return detail::PoolCase<Handler>(task.job(), std::move(handler));
}

}  // namespace weft
