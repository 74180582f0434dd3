// Takes work from other workers, as a thief and as a visitor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scheduler/worker/clockwork.hpp"
#include "scheduler/worker/thief.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

// Returns whether another worker may have work, or soon create some.
[[nodiscard]] bool is_search_worthwhile(Shared& shared) noexcept;
// Returns how long a searcher checks the other workers, in nanoseconds.
[[nodiscard]] std::int64_t search_time(Shared& shared) noexcept;

// Carries out the decisions of its Thief. Owner: the worker.
class Searcher {
 public:
  Searcher(Worker& worker, Clockwork& clockwork, Shared& shared);

  // Searches the other workers for work during search_time(). Returns null if it finds no work.
  [[nodiscard]] fibers::Fiber* search_for_a_while() noexcept;
  // A worker that has work calls this function at a look. Runs overdue timers of other workers, and
  // takes fibers that would wait longer there than here.
  void visit_others(std::int64_t now) noexcept;
  // Takes all fibers of the inject queue. Returns false if that queue is empty.
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
