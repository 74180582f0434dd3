// The counts of servers, for the metrics of the process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <weft/detail/metrics_source.hpp>
#include <weft/net/serve.hpp>

namespace weft::net {

// While the result exists, readings of the metrics include `stats()`. Returns null without a name.
// Throws std::system_error, std::bad_alloc.
[[nodiscard]] std::unique_ptr<detail::MetricsSource> make_metrics(
    const std::string& name, std::function<ServerStats()> stats);

}  // namespace weft::net
