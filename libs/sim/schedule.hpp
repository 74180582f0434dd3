// Who runs next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>
#include <weft/sim.hpp>

#include "libs/sim/chance.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::sim {

// A living fiber, as the simulation sees it.
struct Actor {
  std::uint64_t number = 0;    // In the order of spawns.
  std::uint64_t priority = 0;  // The greater, the sooner; for strategies that have priorities.
  std::uint32_t host = 0;
  std::uint32_t life = 0;  // The host's: it grows with each crash.
  bool is_helper = false;  // It belongs to the simulation itself: it is no leak.
  // Since when it has had a worker of its host, by the simulation's clock; 0: it has none.
  std::int64_t has_worker_since = 0;
};

// An actor that is ready.
struct Candidate {
  fibers::Fiber* fiber;
  Actor* actor;
  bool goes_on;  // It ran last, and could run on: to choose another one is a preemption.
  std::int64_t ready_since;  // Nanoseconds, by the simulation's clock.
};

// A strategy. It lives as long as the exploration, so that runs may build on earlier ones. All
// calls come from one thread at a time.
class Schedule {
 public:
  Schedule() = default;
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // A run begins. From the turn `last_preemption` on there are no preemptions.
  virtual void begin(std::uint64_t seed, std::uint64_t last_preemption) = 0;
  // Returns the priority of a new actor.
  [[nodiscard]] virtual std::uint64_t priority() noexcept { return 0; }
  // The index of the one that runs. There is at least one.
  [[nodiscard]] virtual std::size_t choose(std::span<const Candidate> ready) = 0;
  // Returns whether the one that was chosen gives way in its next call that may park.
  [[nodiscard]] virtual bool ends_turn() noexcept = 0;
  // After a run: whether there is another schedule of the same seed.
  [[nodiscard]] virtual bool has_more() noexcept { return false; }
};

[[nodiscard]] std::unique_ptr<Schedule> make_schedule(const Options& options);

}  // namespace weft::sim
