// What a run leaves out of what its seed decides.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::sim {

// A failure is shortened by runs with other plans. Each draw of the seed remains as it was; the
// plan only omits what is drawn, or makes it happen sooner.
struct Plan {
  std::uint64_t last_preemption = ~std::uint64_t{0};
  std::vector<bool> left_out = {};  // The index is the number of a fault.
  // By the number of a fault; 1 where there is none. It divides the fault's moment, and its
  // duration down to the shortest one.
  std::vector<std::int64_t> divisors = {};
  bool is_silent = false;  // Parts of streams and datagrams are not lost.
  bool is_quick = false;   // Each latency is the least.
  // Only these first system calls and allocations fail that are to fail.
  std::uint64_t most_failures = ~std::uint64_t{0};
};

}  // namespace weft::sim
