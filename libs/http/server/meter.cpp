#include "libs/http/server/meter.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <string_view>
#include <utility>

namespace weft::http {

using detail::acquire;
using detail::relaxed;

namespace {

constinit detail::Atomic<unsigned> threads_that_count{0};

struct Figure {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::uint64_t ServerStats::*number;
};

constexpr std::array kFigures = std::to_array<Figure>({
    {"weft_http_connections_count", "gauge", "Connections that are open.",
     &ServerStats::connections},
    {"weft_http_accepted_total", "counter", "Connections accepted.", &ServerStats::accepted},
    {"weft_http_requests_total", "counter", "Valid requests.", &ServerStats::requests},
    {"weft_http_refused_total", "counter", "Requests answered with 503 for lack of a slot.",
     &ServerStats::refused},
    {"weft_http_malformed_total", "counter", "Heads answered with an error.",
     &ServerStats::malformed},
    {"weft_http_accept_pauses_total", "counter", "Times that accepting failed and was retried.",
     &ServerStats::accept_pauses},
    {"weft_http_turned_away_total", "counter", "Connections answered with 503 at once.",
     &ServerStats::turned_away},
});

constexpr std::array<const char*, 6> kStatuses = {"broken", "1xx", "2xx", "3xx", "4xx", "5xx"};

detail::OpenRequest describe(const RequestInProgress& request,
                             const detail::MetricsSource& source) {
  return {.server = source.labels(),
          .fiber = request.fiber,
          .what = request.method + (request.method.empty() ? "" : " ") + request.target,
          .peer = request.peer.to_string(),
          .route = request.route,
          .state = to_string(request.state),
          .age = request.age,
          .waiting = request.waiting};
}

}  // namespace

Meter::Meter(const std::string& name, std::function<ServerStats()> stats, List list)
    : stats_(std::move(stats)),
      source_(
          "server", name.empty() ? "http" : name,
          [this](const detail::MetricsSource& source, metrics::Reading& reading) {
            add_stats(source, reading);
            add_routes(source, reading);
          },
          [list = std::move(list)](const detail::MetricsSource& source,
                                   std::vector<detail::OpenRequest>& requests, std::size_t most) {
            for (const RequestInProgress& one : list(most)) {
              requests.push_back(describe(one, source));
            }
          }) {}

Meter::~Meter() {
  for (auto& place : parts_) {
    Part* const part = place.load(acquire);  // [meter]
    if (part == nullptr) continue;
    for (auto& cell : part->cells) delete cell.load(acquire);  // [meter]
    delete part;
  }
}

// Not inlined, because a compiler could otherwise keep the address of a thread_local across a park,
// after which the fiber may run on another thread.
[[gnu::noinline]] std::size_t Meter::part_of_thread() noexcept {
  constinit thread_local unsigned number = 0;
  if (number == 0) [[unlikely]]
    number = threads_that_count.fetch_add(1, relaxed) + 1;
  const std::size_t before = number - 1;
  return before < kOwnParts ? before : kOwnParts + before % (kParts - kOwnParts);
}

// Returns the record to which `place` points, and creates it if `place` is null. Returns null if
// memory runs out.
template <class Record>
[[gnu::noinline]] Record* Meter::make(detail::Atomic<Record*>& place) noexcept {
  Record* const made = new (std::nothrow) Record;
  if (made == nullptr) return nullptr;
  Record* found = nullptr;
  // Acquire on failure: the caller then uses the record that another thread has made.
  if (place.compare_exchange_strong(found, made, detail::acq_rel, acquire)) return made;  // [meter]
  delete made;
  return found;
}

Meter::Part* Meter::part_at(std::size_t number) noexcept {
  auto& place = parts_[number];
  Part* const part = place.load(acquire);  // [meter]
  return part != nullptr ? part : make(place);
}

void Meter::count_request() noexcept {
  const std::size_t number = part_of_thread();
  if (Part* const part = part_at(number)) add(part->requests, 1, number);
}

std::uint64_t Meter::requests() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& place : parts_) {
    const Part* const part = place.load(acquire);              // [meter]
    if (part != nullptr) sum += part->requests.load(relaxed);  // Relaxed: a count.
  }
  return sum;
}

void Meter::record(RouteIndex route, int status, std::int64_t nanoseconds) noexcept {
  const std::size_t number = part_of_thread();
  Part* const part = part_at(number);
  if (part == nullptr) return;
  Cell* cell = part->cells[route].load(acquire);  // [meter]
  if (cell == nullptr) [[unlikely]]
    cell = make(part->cells[route]);
  if (cell == nullptr) return;
  const auto duration = static_cast<std::uint64_t>(std::max<std::int64_t>(0, nanoseconds));
  const auto bucket =
      std::clamp<std::size_t>(std::bit_width(duration), kFirstBucket, kFirstBucket + kBuckets - 1);
  add(cell->durations[bucket - kFirstBucket], 1, number);
  add(cell->nanoseconds, duration, number);
  add(cell->statuses[std::min<unsigned>(static_cast<unsigned>(status) / 100, 5)], 1, number);
}

void Meter::add_stats(const detail::MetricsSource& source, metrics::Reading& reading) const {
  const ServerStats now = stats_();
  for (const Figure& figure : kFigures) {
    detail::family_of(reading, figure.name, figure.type, figure.help)
        .samples.push_back({.labels = source.labels(), .value = now.*figure.number});
  }
}

void Meter::add_routes(const detail::MetricsSource& source, metrics::Reading& reading) const {
  for (std::size_t route = 0; route < kMostRoutes; ++route) {
    add_route(static_cast<RouteIndex>(route), source.labels(), reading);
  }
}

// Adds a route's counts, summed over all parts, to the reading. Omits a route without responses.
void Meter::add_route(RouteIndex route, const metrics::Labels& labels,
                      metrics::Reading& reading) const {
  metrics::Sample times{.labels = labels};
  std::array<std::uint64_t, kStatuses.size()> statuses{};
  for (const auto& place : parts_) {
    const Part* const part = place.load(acquire);  // [meter]
    const Cell* const cell =
        part == nullptr ? nullptr : part->cells[route].load(acquire);  // [meter]
    if (cell == nullptr) continue;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      const std::uint64_t count = cell->durations[i].load(relaxed);
      times.times.buckets[kFirstBucket + i] += count;
      times.times.count += count;
      const std::chrono::nanoseconds bound((std::int64_t{1} << (kFirstBucket + i)) - 1);
      if (count > 0) times.times.max = std::max(times.times.max, bound);
    }
    times.times.sum += std::chrono::nanoseconds(cell->nanoseconds.load(relaxed));
    for (std::size_t i = 0; i < statuses.size(); ++i)
      statuses[i] += cell->statuses[i].load(relaxed);
  }
  if (times.times.count == 0) return;
  times.labels.emplace_back("route", title_of_route(route));
  auto& answers = detail::family_of(reading, "weft_http_answers_total", "counter",
                                    "Answers by route and class of status.");
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (statuses[i] == 0) continue;
    answers.samples.push_back({.labels = times.labels, .value = statuses[i]});
    answers.samples.back().labels.emplace_back("status", kStatuses[i]);
  }
  detail::family_of(reading, "weft_http_request_seconds", "histogram",
                    "From the head of a request to the end of its answer.")
      .samples.push_back(std::move(times));
}

const char* to_string(RequestState state) noexcept {
  switch (state) {
    case RequestState::reading_head:
      return "reading head";
    case RequestState::handling:
      return "handling";
    case RequestState::reading_body:
      return "reading body";
    case RequestState::writing:
      return "writing";
  }
  return "";
}

}  // namespace weft::http
