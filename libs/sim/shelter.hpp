// A scope for the simulation's own work.
#pragma once

#include "libs/sim/races.hpp"
#include "libs/sim/run_state.hpp"

namespace weft::sim {

// Marks a scope in which the simulation itself works. The simulation injects no allocation failures
// into the scope, because it cannot continue without memory. The thread sanitizer ignores what
// happens in the scope (races.hpp). The fiber must not park in the scope. Any thread may use it. A
// null run is allowed.
class Shelter {
 public:
  explicit Shelter(RunState* run) noexcept : run_(run) {
    begin_unwatched();
    if (run_ != nullptr) run_->enter_shelter();
  }
  ~Shelter() {
    if (run_ != nullptr) run_->leave_shelter();
    end_unwatched();
  }
  Shelter(const Shelter&) = delete;
  Shelter& operator=(const Shelter&) = delete;

 private:
  RunState* const run_;
};

}  // namespace weft::sim
