#include "observe/timed_pages.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/trace.hpp>

#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"

namespace weft::observe {

namespace {

using live::Answer;

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr double kLeastSeconds = 0.001;
constexpr double kMostSeconds = 60;
// The limit of a trace's events, which make some 40 MB of JSON.
constexpr std::size_t kMostTraceEvents = std::size_t{1} << 18;
constexpr std::size_t kFewestTraceEvents = 1024;

detail::Atomic<int> trace_is_taken{0};

// Returns the value of `name` in `a=1&b=2`, or an empty text if there is none.
std::string_view value_of(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

// Returns the time that the query names, or nothing if it names no valid time.
std::optional<std::chrono::nanoseconds> duration_of(std::string_view query) {
  constexpr double kUsualSeconds = 5;
  const std::string_view text = value_of(query, "seconds");
  double seconds = kUsualSeconds;
  if (!text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size()) return {};
  }
  // The comparison also rejects NaN.
  if (!(seconds >= kLeastSeconds && seconds <= kMostSeconds)) return {};
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

Answer ended_early() {
  return {503, kPlain, "the recording ended early: the request's time or its server has ended\n"};
}

std::size_t events_per_worker() {
  std::size_t workers = 0;
  (void)scheduler::visit_registry(Deadline::never(), [&](scheduler::Scheduler& scheduler) {
    workers += scheduler.shared().desks().size();
  });
  const std::size_t share = kMostTraceEvents / std::max<std::size_t>(workers, 1);
  return std::max(std::bit_floor(share), kFewestTraceEvents);
}

// Records while it exists.
class TraceScope {
 public:
  TraceScope() { trace::start({.events_per_worker = events_per_worker()}); }
  ~TraceScope() { trace::stop(); }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
};

std::string trace_text() {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // Throws if memory is short.
  trace::write(out);
  return std::move(out).str();
}

Answer record_trace(std::chrono::nanoseconds duration, const runtime::Wait& wait) {
  const runtime::RecordingTurn turn(trace_is_taken);
  if (!turn.is_mine() || trace::is_on()) {
    return {409, kPlain, "another trace is being recorded: try again later\n"};
  }
  {
    const TraceScope recording;
    if (!wait(Deadline::after(duration))) return ended_early();
  }
  // Runs on a helper thread, because it may take a quarter of a second.
  return {200, "application/json", blocking(&trace_text)};
}

// Returns an answer that explains why there is no profile.
Answer refusal_of(const std::error_code& error) {
  if (error == std::errc::operation_in_progress) {
    return {409, kPlain, "another recording of this kind is in progress: try again later\n"};
  }
  if (error == std::errc::device_or_resource_busy) {
    return {409, kPlain, "the program handles SIGPROF itself, by which a profile is made\n"};
  }
  if (error == std::errc::operation_not_supported) {
    return {503, kPlain, "there are no profiles under a sanitizer, nor in a simulation\n"};
  }
  return ended_early();
}

using RecordProfile = Result<std::string> (*)(const profile::Options&, const runtime::Wait&);

// Returns null for any page other than a profile.
RecordProfile recorder_of(std::string_view path) noexcept {
  if (path == "/profile") return &runtime::record_processor;
  if (path == "/contention") return &runtime::record_contention;
  if (path == "/blocked") return &runtime::record_blocked;
  return nullptr;
}

Answer record_profile(RecordProfile record, std::chrono::nanoseconds duration,
                      std::string_view query, const runtime::Wait& wait) {
  const std::string_view format = value_of(query, "format");
  const bool is_pprof = format == "pprof";
  if (!is_pprof && !format.empty() && format != "folded") {
    return {400, kPlain, "format must be folded or pprof\n"};
  }
  auto [text, error] = record(
      {.duration = duration, .format = is_pprof ? profile::Format::pprof : profile::Format::folded},
      wait);
  if (error) return refusal_of(error);
  return {200, is_pprof ? "application/octet-stream" : kPlain, std::move(text)};
}

}  // namespace

bool is_timed_page(std::string_view path) noexcept {
  return path == "/trace" || recorder_of(path) != nullptr;
}

Answer answer_timed(std::string_view path, std::string_view query, const runtime::Wait& wait) {
  const std::optional<std::chrono::nanoseconds> duration = duration_of(query);
  if (!duration) return {400, kPlain, "seconds must be a number from 0.001 to 60\n"};
  if (path == "/trace") return record_trace(*duration, wait);
  return record_profile(recorder_of(path), *duration, query, wait);
}

}  // namespace weft::observe
