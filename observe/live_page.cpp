#include <weft/live_page.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <weft/detail/metrics_source.hpp>
#include <weft/dump.hpp>
#include <weft/metrics.hpp>
#include <weft/this_fiber.hpp>

#include "base/printable.hpp"
#include "observe/fiber_list.hpp"
#include "observe/heap_page.hpp"
#include "observe/json.hpp"
#include "observe/leaks.hpp"
#include "observe/live_page_html.hpp"
#include "observe/timed_pages.hpp"
#include "runtime/symbols.hpp"

namespace weft::live {

namespace {

using namespace std::chrono_literals;
using observe::FiberGroup;

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kJson = "application/json";
// A page has at most this many groups; /fibers has the rest.
constexpr std::size_t kMostGroups = 100;
constexpr std::size_t kMostRequests = 50;  // For each server.

std::vector<FiberGroup> groups_now() { return group_fibers(observe::list_fibers()); }

void write_groups(observe::JsonWriter& json) {
  json.begin_array();
  std::size_t count = 0;
  for (const FiberGroup& group : groups_now()) {
    if (++count > kMostGroups) break;
    const observe::FiberEntry& fiber = group.example;
    json.begin_object().field("count", group.count).field("state", fiber.state);
    json.field("reason", fiber.reason);
    if (fiber.age.count() > 0) json.field("age", runtime::describe_age(fiber.age));
    if (fiber.type != nullptr) {
      json.field("runs", describe_task(fiber));
    } else {
      json.field("name", fiber.name);
    }
    if (fiber.site != nullptr) json.field("spawned_at", describe_site(fiber));
    json.end_object();
  }
  json.end_array();
}

void write_requests(observe::JsonWriter& json) {
  json.begin_array();
  for (const detail::OpenRequest& request : detail::MetricsSource::requests(kMostRequests)) {
    json.begin_object();
    for (const auto& [name, value] : request.server) json.field(name, value);
    json.field("fiber", request.fiber).field("what", request.what).field("peer", request.peer);
    json.field("route", request.route).field("state", request.state);
    json.field("age", request.age.count()).field("waiting", request.waiting.count());
    json.end_object();
  }
  json.end_array();
}

// Writes a line for each request: its age, its route and its peer.
void write_request_lines(std::ostream& out) {
  for (const detail::OpenRequest& request : detail::MetricsSource::requests(kMostRequests)) {
    std::string what = request.what.empty() ? "(head not complete)" : request.what;
    base::make_printable(what);
    out << "for " << request.age / 1ms << " ms: " << what << "; from " << request.peer << "; route "
        << request.route << "; " << request.state;
    if (request.waiting.count() > 0) {
      out << ", has waited for the client for " << request.waiting / 1ms << " ms";
    }
    out << "; fiber " << request.fiber;
    for (const auto& [name, value] : request.server) out << "; " << name << ' ' << value;
    out << '\n';
  }
}

void write_data(std::ostream& out) {
  out << "{\"metrics\":";
  metrics::write_json(out);
  out << ",\"groups\":";
  observe::JsonWriter json(out);
  write_groups(json);
  json.flush();
  out << ",\"requests\":";
  observe::JsonWriter requests(out);
  write_requests(requests);
  requests.flush();
  out << '}';
}

// Writes what the fibers of a group run, and where they were spawned.
void write_origin(std::ostream& out, const observe::FiberEntry& fiber) {
  if (fiber.type != nullptr) out << "; runs " << describe_task(fiber);
  if (fiber.type == nullptr && !fiber.name.empty()) {
    std::string name = fiber.name;
    base::make_printable(name);
    out << "; '" << name << "' for one";
  }
  if (fiber.site != nullptr) out << "; spawned at " << describe_site(fiber);
  out << '\n';
}

// The format is that of Go's /debug/pprof/goroutine?debug=1: a number of fibers, and what these
// fibers have in common.
void write_group_lines(std::ostream& out) {
  for (const FiberGroup& group : groups_now()) {
    const observe::FiberEntry& fiber = group.example;
    out << group.count << ' ' << fiber.state;
    if (fiber.reason[0] != '\0') out << ": " << fiber.reason;
    if (fiber.age.count() > 0) out << ", for up to " << runtime::describe_age(fiber.age);
    write_origin(out, fiber);
  }
}

void write_leaks(std::ostream& out) {
  for (const observe::Leak& leak : observe::find_leaks(observe::list_fibers())) {
    out << leak.count << " parked: " << leak.example.reason << ", " << leak.old
        << " for ten minutes or longer, " << leak.young << " for one to ten minutes, for up to "
        << runtime::describe_age(leak.example.age);
    write_origin(out, leak.example);
  }
}

std::string written_by(void (*write)(std::ostream&)) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // Throws if memory is short.
  observe::call_with_enough_stack([&] { write(out); });
  return out.str();
}

bool is_loopback(const net::Address& address) {
  const std::string text = address.to_string();
  return text.starts_with("127.") || text.starts_with("[::1]") || text.starts_with("[::ffff:127.");
}

// Checks a Host header, whose port may be absent. It parses the whole header, because a name may
// begin like an address.
bool is_loopback(std::string_view host) {
  constexpr std::string_view kName = "localhost";
  std::string text(host);
  if (host == kName || host.starts_with("localhost:")) text.replace(0, kName.size(), "127.0.0.1");
  net::Result<net::Address> address = net::Address::parse(text);
  if (address.error) address = net::Address::parse(text.append(":0"));
  return !address.error && is_loopback(address.value);
}

// Holds a path, and a query that may be empty.
struct Target {
  explicit Target(std::string_view text)
      : path(text.substr(0, text.find('?'))),
        query(text.substr(std::min(path.size() + 1, text.size()))) {}

  std::string_view path;
  std::string_view query;
};

Answer answer_by(const std::function<Answer()>& make) {
  try {
    return make();
  } catch (const std::exception& refusal) {
    return {503, kText, std::string("no reading: ").append(refusal.what()).append("\n")};
  }
}

Answer heap_now(std::string_view query) {
  Answer answer;
  observe::call_with_enough_stack([&] { answer = observe::answer_heap(query); });
  return answer;
}

Answer answer_or_throw(std::string_view path, std::string_view query) {
  if (path == "/") return {200, "text/html; charset=utf-8", std::string(observe::kLivePage)};
  if (path == "/data.json") return {200, kJson, written_by(&write_data)};
  if (path == "/metrics") {
    return {200, "text/plain; version=0.0.4; charset=utf-8",
            written_by([](std::ostream& out) { metrics::write_prometheus(out); })};
  }
  if (path == "/fibers") return {200, kText, written_by(&write_group_lines)};
  if (path == "/requests") return {200, kText, written_by(&write_request_lines)};
  if (path == "/leaks") return {200, kText, written_by(&write_leaks)};
  if (path == "/deadlocks") return {200, kText, written_by(&dump::write_deadlocks)};
  if (path == "/fibers.json") return {200, kJson, written_by(&dump::write_json)};
  if (path == "/stacks") return {200, kText, written_by(&dump::write_folded)};
  if (path == "/heap") return heap_now(query);
  return {404, kText,
          "no such page; the pages are /, /data.json, /metrics, /deadlocks, "
          "/fibers, /fibers.json, /leaks, /requests, /stacks, /heap, /trace, /profile, /contention "
          "and /blocked\n"};
}

}  // namespace

Answer answer(std::string_view target) {
  const Target wanted(target);
  return answer_by([&] {
    if (!observe::is_timed_page(wanted.path)) return answer_or_throw(wanted.path, wanted.query);
    return observe::answer_timed(wanted.path, wanted.query, [](Deadline end) {
      return this_fiber::sleep_until(end, Until::ambient());
    });
  });
}

bool records(std::string_view target) noexcept {
  return observe::is_timed_page(Target(target).path);
}

// A foreign web page can make a browser request a name that resolves to this host; the name in the
// Host header reveals that.
bool may_read(Readers readers, const net::Address& peer, std::string_view host) {
  if (readers == Readers::everybody) return true;
  return is_loopback(peer) && (host.empty() || is_loopback(host));
}

}  // namespace weft::live
