// The strategies that choose the fiber that runs next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>
#include <weft/sim.hpp>

#include "libs/sim/chance.hpp"
#include "libs/sim/plan.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::sim {

// The record that the simulation keeps of a living fiber.
struct Actor {
  std::uint64_t number = 0;  // Fibers are numbered in the order of spawns.
  // The actor with the highest priority runs first, if the strategy uses priorities.
  std::uint64_t priority = 0;
  std::uint32_t host = 0;
  std::uint32_t life = 0;  // The number of the fiber's process; see Host::life.
  bool is_helper = false;  // The fiber belongs to the simulation itself, and is no leak.
  // When the fiber got a worker of its host, by the simulation's clock; 0 if it has none.
  std::int64_t has_worker_since = 0;
};

// A ready actor.
struct Candidate {
  fibers::Fiber* fiber;
  Actor* actor;
  bool goes_on;              // Ran last and could continue, so another choice is a preemption.
  std::int64_t ready_since;  // Nanoseconds by the simulation's clock.
};

// Chooses the fiber that runs next. A schedule lives as long as the exploration, so that a run may
// build on earlier runs. One thread at a time calls it.
class Schedule {
 public:
  Schedule() = default;
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Begins a run without the preemptions that the plan omits. The plan outlives the run.
  virtual void begin(std::uint64_t seed, const Plan& plan) = 0;
  // Returns the priority of a new actor.
  [[nodiscard]] virtual std::uint64_t priority() noexcept { return 0; }
  // Returns the index of the candidate that runs next. There is at least one candidate.
  [[nodiscard]] virtual std::size_t choose(std::span<const Candidate> ready) = 0;
  // Returns whether the chosen fiber must give way in its next call that may park.
  [[nodiscard]] virtual bool ends_turn() noexcept = 0;
  // Returns, after a run, whether the same seed has another schedule.
  [[nodiscard]] virtual bool has_more() noexcept { return false; }
  // Returns how many preemptions the seed drew up to Plan::last_preemption, if they can be omitted
  // one by one.
  [[nodiscard]] virtual std::uint64_t drawn_preemptions() const noexcept { return 0; }
};

[[nodiscard]] std::unique_ptr<Schedule> make_schedule(const Options& options);

}  // namespace weft::sim
