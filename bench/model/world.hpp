// The simulated machine, and what its workers share.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "bench/model/clock.hpp"
#include "bench/model/costs.hpp"
#include "bench/model/fiber.hpp"
#include "bench/model/measurements.hpp"
#include "bench/model/memory.hpp"
#include "bench/model/policy.hpp"

namespace weft::bench::model {

class Worker;

// Mirrors scheduler/idle_set.hpp: how many workers search, and which sleep.
struct IdleSet {
  unsigned searching = 0;
  unsigned sleeping = 0;
  std::vector<bool> asleep;
  Line searching_line{LineKind::searching};
  Line bits_line{LineKind::bits};
  bool hint = false;
  Line hint_line{LineKind::hint};
};

class World {
 public:
  World(unsigned workers, const Costs& costs, const Policy& policy, Load& load, std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // From a fiber of a runtime with one worker: until the load calls finish().
  void run();
  [[noreturn]] void finish();

  // By a source outside the workers: a fiber that was spawned, or woken, by a plain thread.
  void inject(Fiber& fiber);
  // The kernel has an event for which `fiber` waits.
  void deliver_event(Fiber& fiber);

  // How many searchers are enough for more of them, and for waking one.
  [[nodiscard]] unsigned most_searching() const;
  [[nodiscard]] bool wants_wake() const {
    return idle.searching < wake_below_ && idle.sleeping > 0;
  }
  // After a change of what it is about; by a worker.
  void update_hint(Worker& by);
  // IdleSet::work_added and Worker::unpark_for_work; by a worker, or from outside (null).
  void wake_one(Worker* by);
  [[nodiscard]] bool has_work() const;

  Clock clock;
  const Costs costs;
  const Policy policy;
  Load& load;
  Memory memory;
  Measurements sums;
  IdleSet idle;
  std::vector<std::unique_ptr<Worker>> workers;
  std::deque<Fiber*> injected;
  Line inject_line{LineKind::inject};
  Worker* napper = nullptr;
  Line napper_line{LineKind::napper};
  // The poller, in use if the load says so.
  bool watches_anything = false;
  std::deque<Fiber*> events;
  Worker* in_poller = nullptr;
  const std::uint64_t seed;

 private:
  unsigned wake_below_ = 1;
};

}  // namespace weft::bench::model
