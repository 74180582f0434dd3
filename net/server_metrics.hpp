// The counts of servers, for the metrics of the process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <weft/detail/metrics_source.hpp>
#include <weft/net/serve.hpp>

namespace weft::net {

// While it exists, each reading of the metrics includes the result of `stats`. Null without a name.
// Throws std::system_error, std::bad_alloc.
[[nodiscard]] std::unique_ptr<detail::MetricsSource> make_metrics(
    const std::string& name, std::function<ServerStats()> stats);

}  // namespace weft::net
