#include "net/server_metrics.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace weft::net {

namespace {

struct ServerFigure {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::uint64_t ServerStats::*number;
};

constexpr std::array kServerFigures = std::to_array<ServerFigure>({
    {"weft_server_connections_count", "gauge", "Connections that are open.", &ServerStats::open},
    {"weft_server_accepted_total", "counter", "Connections accepted.", &ServerStats::accepted},
    {"weft_server_refused_total", "counter", "Accepted connections without a call of the handler.",
     &ServerStats::refused},
    {"weft_server_accept_pauses_total", "counter", "Times that accepting failed and was retried.",
     &ServerStats::pauses},
    {"weft_server_timed_out_total", "counter", "Idle connections that idle_timeout ended.",
     &ServerStats::timed_out},
    {"weft_server_closed_late_total", "counter", "Connections that lived to the end of the grace.",
     &ServerStats::closed_late},
});

}  // namespace

std::unique_ptr<detail::MetricsSource> make_metrics(const std::string& name,
                                                    std::function<ServerStats()> stats) {
  if (name.empty()) return nullptr;
  return std::make_unique<detail::MetricsSource>(
      "server", name,
      [read = std::move(stats)](const detail::MetricsSource& source, metrics::Reading& reading) {
        const ServerStats now = read();
        for (const ServerFigure& figure : kServerFigures) {
          detail::family_of(reading, figure.name, figure.type, figure.help)
              .samples.push_back({.labels = source.labels(), .value = now.*figure.number});
        }
      });
}

}  // namespace weft::net
