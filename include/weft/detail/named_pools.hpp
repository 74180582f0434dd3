// Reads the metrics of the named pools of a process.
#pragma once

#include <vector>
#include <weft/metrics.hpp>

namespace weft::detail {

// Appends the metrics of each named pool. Never parks; fibers and plain threads may call it. Throws
// std::bad_alloc.
void read_named_pools(std::vector<metrics::PoolMetrics>& readings);

}  // namespace weft::detail
