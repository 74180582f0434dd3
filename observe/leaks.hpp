// Finds fibers that nothing seems to wake.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/fiber_list.hpp"

namespace weft::observe {

// Fibers that were spawned at one place with one callable and wait for one reason. Many of them
// have waited for a long time, and their number grows.
struct Leak {
  FiberEntry example;       // The fiber that has waited longest.
  std::uint64_t count = 0;  // The number of all fibers in the group.
  std::uint64_t old = 0;    // Fibers that have waited for ten minutes or longer.
  std::uint64_t young = 0;  // Fibers that have waited for one to ten minutes.
};

// Returns the groups in which at least 64 fibers are old, and at least a sixteenth of that number
// are young; the largest group first. A server whose clients stay connected while their number
// grows is such a group, too. Throws std::bad_alloc.
[[nodiscard]] std::vector<Leak> find_leaks(const std::vector<FiberEntry>& fibers);

}  // namespace weft::observe
