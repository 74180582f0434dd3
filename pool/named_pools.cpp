// Reads the numbers of all named pools for the metrics of the process.
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
    core.locked([&reading](const pool::PoolState& state) {
      reading.capacity = state.capacity();
      reading.is_closed = state.closed;
      reading.is_paused = state.paused;
      reading.stats = state.read();
    });
    reading.has_timings = core.options().timings;
    if (reading.has_timings) reading.timings = core.timings();
  });
}

}  // namespace weft::detail
