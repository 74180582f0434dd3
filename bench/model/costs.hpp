// How long things take; bench/model/costs.json says where each value comes from.
#pragma once

#include <string>

#include "bench/model/memory.hpp"
#include "bench/model/units.hpp"

namespace weft::bench::model {

struct Costs {
  // One worker, all in its own cache.
  Time spawn = 0;
  Time spawn_joinable = 0;
  Time run_new = 0;  // From the end of one fiber to the end of the next, which is new.
  Time resume = 0;   // A park and the switch to a fiber that was parked.
  Time wake = 0;
  Time channel = 0;     // A send or a receive without parking and waking.
  Time clock = 0;       // Reading the time.
  Time idle_round = 0;  // One round on the idle stack.
  // Thieves.
  Time look = 0;               // At a victim whose lines are cached.
  Time pause = 0;              // Between two rounds of looks.
  Time steal = 0;              // Beyond the lines that it moves.
  double lines_of_new = 0;     // Lines that follow a fiber that is run elsewhere than spawned,
  double lines_of_parked = 0;  // or elsewhere than it was parked.
  // The kernel.
  Time wake_call = 0;     // For who wakes a sleeper.
  Time wake_latency = 0;  // Until the sleeper runs.
  Time sleep = 0;         // For who goes to sleep.
  Time poll = 0;
  Time poll_event = 0;  // Each event beyond.
  // Lines.
  Memory::Distances distances;

  // Throws std::runtime_error.
  [[nodiscard]] static Costs from_file(const std::string& path);
  // Changes one; nanoseconds, or a plain number where it is one.
  void set(const std::string& name, double value);
};

}  // namespace weft::bench::model
