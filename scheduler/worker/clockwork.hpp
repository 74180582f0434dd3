// Runs a worker's own timers, and timers of other workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>

#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

// Any worker may run timers that are due. The holder of the watch runs the timers of sleeping
// workers. A worker that runs one fiber for a long time does not reach its own timers. Owner: the
// worker. Relaxed: the `stack` of a parked fiber does not change.
class Clockwork {
 public:
  Clockwork(Worker& worker, Shared& shared) noexcept : worker_(worker), shared_(shared) {}

  // Runs the timers that are due. Returns the number of fibers that have become runnable.
  std::size_t run(Timers& timers, std::int64_t now) noexcept;
  // Runs the due timers of all workers. Returns true if any fiber has become runnable.
  [[nodiscard]] bool run_all() noexcept;
  [[nodiscard]] bool has_due() const noexcept;
  // Returns the time at which the holder of the watch must run the earliest timer, or `limit` if
  // that is earlier. Timers of awake workers are included, because a worker that runs one fiber for
  // a long time does not reach its own timers.
  [[nodiscard]] Deadline earliest(Deadline limit) const noexcept;

 private:
  std::size_t wake_sleepers(fibers::Fiber*& first) noexcept;
  [[nodiscard]] std::int64_t grace_of(const Desk& other) const noexcept;
  [[nodiscard]] bool has_due(const Desk& other, std::int64_t now) const noexcept;

  Worker& worker_;
  Shared& shared_;
};

}  // namespace weft::scheduler
