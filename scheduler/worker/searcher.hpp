// Lets a worker take work from other workers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scheduler/worker/clockwork.hpp"
#include "scheduler/worker/thief.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

// Returns whether another worker may have work, or soon create some.
[[nodiscard]] bool is_search_worthwhile(Shared& shared) noexcept;
// Returns how long, in nanoseconds, a searcher keeps checking the other workers.
[[nodiscard]] std::int64_t search_time(Shared& shared) noexcept;

// Searches or visits other workers. Its Thief decides what to take from them. Owner: the worker.
class Searcher {
 public:
  Searcher(Worker& worker, Clockwork& clockwork, Shared& shared);

  // Searches the other workers for search_time() nanoseconds. Returns null if it finds no work.
  [[nodiscard]] fibers::Fiber* search_for_a_while() noexcept;
  // A worker that has work calls this function periodically. Runs overdue timers of other workers,
  // and takes fibers that this worker can run sooner.
  void visit_others(std::int64_t now) noexcept;
  // Moves all fibers from the inject queue to this worker's queue. Returns false if there are none.
  [[nodiscard]] bool take_injected() noexcept;

 private:
  [[nodiscard]] fibers::Fiber* look_everywhere(std::int64_t now) noexcept;
  [[nodiscard]] std::size_t steal_from(Desk& victim, std::int64_t now) noexcept;
  void visit(Desk& other, std::int64_t now) noexcept;

  Worker& worker_;
  Desk& desk_;
  Clockwork& clockwork_;
  Shared& shared_;
  Thief thief_;
};

}  // namespace weft::scheduler
