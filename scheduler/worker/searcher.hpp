// What a worker does among the others: as a thief, and as a visitor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scheduler/worker/clockwork.hpp"
#include "scheduler/worker/thief.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

// Whether another worker may have work, or soon make some.
[[nodiscard]] bool is_search_worthwhile(Shared& shared) noexcept;
// How long to look at the others, in nanoseconds.
[[nodiscard]] std::int64_t search_time(Shared& shared) noexcept;

// Carries out what its Thief decides. Owner: the worker.
class Searcher {
 public:
  Searcher(Worker& worker, Clockwork& clockwork, Shared& shared);

  // Looks for work at the others for search_time(); null if there is none.
  [[nodiscard]] fibers::Fiber* search_for_a_while() noexcept;
  // A worker that has work sees, at a look, to timers that others do not get to, and to fibers that
  // wait longer at another worker than here.
  void visit_others(std::int64_t now) noexcept;
  // Takes all that came from outside. False if there is nothing.
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
