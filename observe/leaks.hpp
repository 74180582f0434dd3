// Fibers that nothing seems to wake.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/fiber_list.hpp"

namespace weft::observe {

// Fibers of one place of spawn and one callable that wait for one reason, many of them for long,
// and more of them all the time.
struct Leak {
  FiberEntry example;       // The one that has waited longest.
  std::uint64_t count = 0;  // All of them.
  std::uint64_t old = 0;    // That have waited for ten minutes or longer.
  std::uint64_t young = 0;  // That have waited for one to ten minutes.
};

// Returns the groups in which 64 fibers or more are old, and a sixteenth as many or more are young;
// the largest first. A server whose clients stay connected while their number grows is such a
// group, too. Throws std::bad_alloc.
[[nodiscard]] std::vector<Leak> find_leaks(const std::vector<FiberEntry>& fibers);

}  // namespace weft::observe
