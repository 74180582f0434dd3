// The figures of servers, for the metrics of the process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <weft/detail/metrics_source.hpp>
#include <weft/net/serve.hpp>

namespace weft::net {

// While it lives, each reading of the metrics has what `stats` returns. Null without a name.
// Throws std::system_error, std::bad_alloc.
[[nodiscard]] std::unique_ptr<detail::MetricsSource> make_metrics(
    const std::string& name, std::function<ServerStats()> stats);

}  // namespace weft::net
