// Searches for fibers that wait for each other.
#pragma once

#include <cstdint>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/this_fiber.hpp>

#include "base/read_memory.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/upkeep/wait_cycles.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace weft::test {

inline const Setup kWithOwners{.options = {.lock_owners = true}};

[[nodiscard]] inline bool can_read_memory() {
  int from = 1;
  int to = 0;
  if (base::read_memory(&from, &to, sizeof to)) return true;
  skip("the system refuses process_vm_readv");
  return false;
}

[[nodiscard]] inline std::vector<scheduler::WaitCycle> cycles_now() {
  std::vector<scheduler::WaitCycle> cycles;
  (void)scheduler::visit_registry(Deadline::never(), [&](scheduler::Scheduler& scheduler) {
    cycles = scheduler::find_wait_cycles(scheduler.shared(), Deadline::never(), SIZE_MAX).value();
  });
  return cycles;
}

// A fiber enters the list of a mutex slightly before it leaves its stack, so the search repeats.
[[nodiscard]] inline std::vector<scheduler::WaitCycle> await_cycle() {
  std::vector<scheduler::WaitCycle> cycles = cycles_now();
  while (cycles.empty()) {
    this_fiber::yield();
    cycles = cycles_now();
  }
  return cycles;
}

}  // namespace weft::test
