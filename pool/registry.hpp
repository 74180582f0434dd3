// Which fibers are workers, and of which pool.
#pragma once

#include <weft/detail/pool_job.hpp>

namespace weft::pool {

class PoolCore;

// Registers the calling fiber, for as long as this object lives, as a worker of `core`. It costs
// nothing per task: a worker registers once, and only a task that is about to park asks. A visit
// of a sub-pool registers the fiber of its host a second time.
class Registration {
 public:
  // `running` is where the worker keeps the task that it runs.
  Registration(PoolCore& core, const detail::PoolItem& running) noexcept;
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  // The newest of the calling fiber; null if it is not a worker.
  [[nodiscard]] static Registration* of_caller() noexcept;

  [[nodiscard]] PoolCore& core() const noexcept { return core_; }
  [[nodiscard]] const detail::PoolItem& running() const noexcept { return running_; }
  // The one before it, of the host.
  [[nodiscard]] Registration* outer() const noexcept { return outer_; }

 private:
  Registration* next_ = nullptr;
  Registration* previous_ = nullptr;
  const void* const fiber_;
  PoolCore& core_;
  const detail::PoolItem& running_;
  Registration* const outer_;
};

// Whether the caller is a worker of `core`, or visits it.
[[nodiscard]] bool called_from_worker_of(const PoolCore* core) noexcept;

}  // namespace weft::pool
