// The report as metrics of Prometheus, and as a line of the live page.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <string>
#include <weft/detail/library_metrics.hpp>
#include <weft/posix.hpp>

#include "libs/posix/blocked_calls.hpp"

namespace weft::posix {

namespace {

using Rows = std::vector<BlockedCalls>;

// A file's name may have any bytes; the format takes UTF-8, and escapes these.
std::string quoted(std::string text) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; };
  for (char& c : text) c = is_plain(c) ? c : '?';
  return '"' + text + '"';
}

std::string seconds(std::chrono::nanoseconds time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", static_cast<double>(time.count()) / 1e9);
  return text.data();
}

// Rows of different addresses in one function are one sample.
Rows merged_report() {
  Rows merged;
  for (const BlockedCalls& row : report()) {
    const auto same = std::ranges::find_if(merged, [&](const BlockedCalls& other) {
      return other.call == row.call && other.reason == row.reason && other.from == row.from;
    });
    if (same == merged.end()) {
      merged.push_back(row);
      continue;
    }
    same->count += row.count;
    same->total += row.total;
  }
  return merged;
}

void write_prometheus(std::ostream& out) {
  const Rows rows = merged_report();
  const auto family = [&](const char* name, const char* help, auto value) {
    out << "# HELP " << name << ' ' << help << "\n# TYPE " << name << " counter\n";
    for (const BlockedCalls& row : rows) {
      out << name << "{call=" << quoted(row.call) << ",reason=" << quoted(row.reason)
          << ",from=" << quoted(row.from) << "} " << value(row) << '\n';
    }
  };
  family("weft_posix_blocked_calls_total", "Calls in a posix::Scope that blocked their worker.",
         [](const BlockedCalls& row) { return row.count; });
  family("weft_posix_blocked_seconds_total", "How long these calls took.",
         [](const BlockedCalls& row) { return seconds(row.total); });
}

std::string line() {
  const Rows rows = report();
  if (rows.empty()) return {};
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};
  for (const BlockedCalls& row : rows) {
    count += row.count;
    total += row.total;
  }
  const BlockedCalls& most = rows.front();
  return "weft-posix: " + std::to_string(count) + " calls blocked their worker for " +
         seconds(total) + " s; most of it: " + most.call + "() from " + most.from + ", " +
         most.reason;
}

constinit detail::LibraryMetrics metrics{&write_prometheus, &line};

}  // namespace

void add_metrics() noexcept { detail::add_library_metrics(metrics); }

}  // namespace weft::posix
