// The differences of a shortened run from the run of the same seed.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::sim {

// The shrinker shortens a failure by runs with other plans. Each draw of the seed remains as it
// was; the plan only omits what is drawn, or makes it happen sooner.
struct Plan {
  std::uint64_t last_preemption = ~std::uint64_t{0};  // No preemption in this turn or later.
  std::vector<bool> left_out_preemptions = {};        // The index is the number of a preemption.
  std::vector<bool> left_out = {};                    // The index is the number of a fault.
  // The index is the number of a fault; 1 changes nothing. A divisor divides the moment of the
  // fault, and its duration, which remains at least the shortest duration.
  std::vector<std::int64_t> divisors = {};
  bool is_silent = false;  // The network loses no parts of streams and no datagrams.
  bool is_quick = false;   // Each latency is the smallest possible latency.
  // The number of drawn failures of system calls and allocations that happen, in the order drawn.
  std::uint64_t most_failures = ~std::uint64_t{0};
};

}  // namespace weft::sim
