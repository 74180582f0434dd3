// The named pools of a process.
#pragma once

#include <vector>
#include <weft/metrics.hpp>

namespace weft::detail {

// Appends a reading of each named pool. Fibers and plain threads may call it; it never parks.
// Throws std::bad_alloc.
void read_named_pools(std::vector<metrics::PoolMetrics>& readings);

}  // namespace weft::detail
