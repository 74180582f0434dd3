// The pools of a process, for its metrics.
#include <weft/detail/named_pools.hpp>

#include "pool/core/listing.hpp"
#include "pool/core/pool_core.hpp"

namespace weft::detail {

void read_named_pools(std::vector<metrics::PoolMetrics>& readings) {
  pool::Listing::visit_all([&readings](pool::PoolCore& core) {
    if (core.options().name.empty()) return;
    metrics::PoolMetrics& reading = readings.emplace_back();
    reading.name = core.options().name;
    reading.number = core.number();
    reading.capacity = core.capacity();
    reading.is_closed = core.is_closed();
    reading.is_paused = core.is_paused();
    reading.has_timings = core.options().timings;
    reading.stats = core.stats();
    if (reading.has_timings) reading.timings = core.timings();
  });
}

}  // namespace weft::detail
