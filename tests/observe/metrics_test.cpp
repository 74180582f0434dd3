#include <weft/metrics.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/net/serve.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

using namespace std::chrono_literals;

namespace {

using weft::metrics::Distribution;
using weft::metrics::Reading;
using weft::metrics::RuntimeMetrics;

std::uint64_t parked_for(const RuntimeMetrics& runtime, const std::string& reason) {
  for (const auto& parked : runtime.parked) {
    if (parked.reason == reason) return parked.count;
  }
  return 0;
}

std::uint64_t sum_of(const Distribution& distribution) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : distribution.buckets) sum += count;
  return sum;
}

std::string prometheus(const Reading& reading) {
  std::ostringstream out;
  weft::metrics::write_prometheus(out, reading);
  return out.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Reads the metrics at a moment at which all workers are asleep. It may have to retry, because a
// worker may start late, and each worker sometimes wakes.
RuntimeMetrics read_asleep() {
  for (;;) {
    RuntimeMetrics metrics = weft::metrics::read().runtimes.at(0);
    const auto is_asleep = [](const auto& worker) { return worker.is_asleep; };
    if (std::ranges::all_of(metrics.workers, is_asleep)) return metrics;
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

TEST_SUITE_BEGIN("observe/metrics");

FIBER_TEST_CASE("metrics::read() returns the number of fibers and the reasons for their waits") {
  weft::Event event;
  weft::WaitGroup waiting;
  waiting.add(7);
  for (int i = 0; i < 7; ++i) {
    weft::go([&] {
      waiting.done();
      event.wait();
    });
  }
  waiting.wait();
  // The last fiber may still be between done() and its park.
  Reading reading = weft::metrics::read();
  while (parked_for(reading.runtimes.at(0), "event") < 7) {
    weft::this_fiber::yield();
    reading = weft::metrics::read();
  }
  const RuntimeMetrics& metrics = reading.runtimes.at(0);
  CHECK(reading.runtimes.size() == 1);
  CHECK(metrics.is_counted);
  CHECK(parked_for(metrics, "event") == 7);
  CHECK(metrics.parked_count == 7);
  CHECK(metrics.running == 1);
  CHECK(metrics.stats.live == 8);
  CHECK(metrics.stats.spawned == metrics.stats.live + metrics.stats.finished);
  event.set();
}

FIBER_TEST_CASE("the sums of the metrics over all workers equal the statistics of the runtime") {
  weft::WaitGroup ended;
  ended.add(1000);
  for (int i = 0; i < 1000; ++i) weft::go([&] { ended.done(); });
  ended.wait();
  // The last fiber may not have ended yet.
  while (runtime.stats().live > 1) weft::this_fiber::yield();
  RuntimeMetrics metrics;
  // A fiber that begins its sleep too late sets no timer.
  const auto has_timed = [&] {
    return std::ranges::any_of(metrics.workers,
                               [](const auto& worker) { return worker.timers > 0; });
  };
  while (!has_timed()) {
    weft::this_fiber::sleep_for(2ms);
    metrics = weft::metrics::read().runtimes.at(0);
  }
  CHECK(metrics.workers.size() >= runtime.workers());
  std::uint64_t spawned = 0;
  std::uint64_t finished = 0;
  for (const auto& worker : metrics.workers) {
    spawned += worker.spawned;
    finished += worker.finished;
    CHECK(worker.busy >= 0ns);
    CHECK(worker.parked >= 0ns);
    CHECK(worker.index < metrics.workers.size());
  }
  CHECK(spawned == 1000);  // The main fiber was spawned by a thread.
  CHECK(finished == metrics.stats.finished);
}

FIBER_TEST_CASE_WITH("the metrics count how many times a worker's run queue overflowed",
                     {.workers = {1}}) {
  weft::WaitGroup ended;
  ended.add(2000);
  for (int i = 0; i < 2000; ++i) weft::go([&] { ended.done(); });
  ended.wait();
  CHECK(weft::metrics::read().runtimes.at(0).workers.at(0).overflows > 0);
}

FIBER_TEST_CASE("the metrics contain the latency and the run time of sampled fibers") {
  RuntimeMetrics metrics;
  while (metrics.scheduling_latency.count < 3 || metrics.run_time.count < 3) {
    weft::WaitGroup ended;
    ended.add(100);
    for (int i = 0; i < 100; ++i) weft::go([&] { ended.done(); });
    ended.wait();
    metrics = weft::metrics::read().runtimes.at(0);
  }
  for (const Distribution* each : {&metrics.scheduling_latency, &metrics.run_time}) {
    CHECK(sum_of(*each) == each->count);
    CHECK(each->max > 0ns);
    CHECK(each->percentile(50) <= each->percentile(99));
    CHECK(each->percentile(100) <= each->max);
    CHECK(each->sum >= each->max);
  }
}

TEST_CASE("the 100th percentile of a distribution is its maximum, even beyond the last bucket") {
  Distribution times;
  times.count = 2;
  times.max = 1h;
  times.buckets.front() = 1;
  times.buckets.back() = 1;
  CHECK(times.percentile(50) == 0ns);
  CHECK(times.percentile(100) == 1h);
}

THREAD_TEST_CASE_WITH(
    "a worker's busy and parked times in the metrics add up to at least the elapsed time",
    {.workers = {2}}) {
  const RuntimeMetrics before = read_asleep();
  std::this_thread::sleep_for(20ms);
  const RuntimeMetrics after = read_asleep();
  for (std::size_t i = 0; i < before.workers.size(); ++i) {
    const auto life_before = before.workers[i].busy + before.workers[i].parked;
    CHECK(after.workers[i].busy + after.workers[i].parked >= life_before + 20ms);
    CHECK(after.workers[i].parked > before.workers[i].parked);
  }
  runtime.run([] {});
}

FIBER_TEST_CASE("the metrics contain a named pool and omit an unnamed pool") {
  weft::FiberPool without({.capacity = 2});
  weft::FiberPool pool(
      {.capacity = 3, .queue_capacity = 4, .timings = true, .name = "mail \"out\""});
  weft::Event event;
  for (int i = 0; i < 5; ++i) CHECK(pool.submit([&] { event.wait(); }));
  while (weft::metrics::read().pools.at(0).stats.busy < 3) weft::this_fiber::yield();
  {
    const Reading reading = weft::metrics::read();
    REQUIRE(reading.pools.size() == 1);
    const auto& metrics = reading.pools.front();
    CHECK(metrics.name == "mail \"out\"");
    CHECK(metrics.capacity == 3);
    CHECK(metrics.stats.queued == 2);
    CHECK(metrics.stats.submitted == 5);
    CHECK(contains(prometheus(reading), "\nweft_pool_queue_depth{pool=\"mail \\\"out\\\"\"} 2\n"));
    std::ostringstream json;
    weft::metrics::write_json(json, reading);
    CHECK(contains(json.str(), R"({"name":"mail \"out\"","number":1,"capacity":3,)"));
  }
  event.set();
  pool.wait_idle();
  CHECK(weft::metrics::read().pools.at(0).timings.run_time.count() == 5);
}

FIBER_TEST_CASE_WITH("the Prometheus page has each metric family once, with its samples below it",
                     {.workers = {2}}) {
  const weft::FiberPool first({.capacity = 1, .name = "same"});
  const weft::FiberPool second({.capacity = 2, .name = "same"});
  const std::string page = prometheus(weft::metrics::read());
  const std::string label =
      "runtime=\"" + std::to_string(weft::metrics::read().runtimes.at(0).number) + "\"";
  CHECK(contains(
      page, "\n# TYPE weft_live_fibers_count gauge\nweft_live_fibers_count{" + label + "} 1\n"));
  CHECK(contains(page, "\nweft_worker_steal_count_total{" + label + ",worker=\"1\"} "));
  CHECK(contains(page, "\nweft_sched_latencies_seconds_bucket{" + label + ",le=\"+Inf\"} "));
  CHECK(contains(page, "\nweft_pool_capacity{pool=\"same\"} 1\n"));
  CHECK(contains(page, "\nweft_pool_capacity{pool=\"same\",number=\"2\"} 2\n"));
  std::istringstream lines(page);
  std::vector<std::string> families;
  for (std::string line; std::getline(lines, line);) {
    CHECK(!line.empty());
    if (line.starts_with("# TYPE ")) families.push_back(line.substr(7, line.find(' ', 7) - 7));
    if (line.starts_with('#')) continue;
    CHECK(line.starts_with(families.back()));
  }
  const std::size_t count = families.size();
  std::ranges::sort(families);
  families.erase(std::unique(families.begin(), families.end()), families.end());
  CHECK(families.size() == count);
}

FIBER_TEST_CASE_WITH("the Prometheus page stays valid when a name is not UTF-8", {.workers = {1}}) {
  const weft::FiberPool pool({.capacity = 1, .name = "caf\xE9 \xC3\xA9"});
  CHECK(contains(prometheus(weft::metrics::read()),
                 "\nweft_pool_capacity{pool=\"caf\xEF\xBF\xBD \xC3\xA9\"} 1\n"));
}

FIBER_TEST_CASE_WITH("a pool keeps its metric labels while pools of the same name come and go",
                     {.workers = {1}}) {
  const auto capacity = [](const std::string& labels) {
    const std::string page = prometheus(weft::metrics::read());
    const std::string sample = "\nweft_pool_capacity{pool=\"db\"" + labels + "} ";
    const std::size_t at = page.find(sample);
    return at == std::string::npos ? 0 : std::stoi(page.substr(at + sample.size()));
  };
  std::optional<weft::FiberPool> first(weft::PoolOptions{.capacity = 1, .name = "db"});
  const weft::FiberPool second({.capacity = 2, .name = "db"});
  const weft::FiberPool other({.capacity = 9, .name = "other"});
  first.reset();
  CHECK(capacity("") == 0);
  CHECK(capacity(",number=\"2\"") == 2);
  first.emplace(weft::PoolOptions{.capacity = 3, .name = "db"});
  const weft::FiberPool third({.capacity = 4, .name = "db"});
  CHECK(capacity("") == 3);
  CHECK(capacity(",number=\"2\"") == 2);
  CHECK(capacity(",number=\"3\"") == 4);
}

TEST_CASE("a runtime keeps its metric labels while other runtimes come and go") {
  const auto workers = [](unsigned number) {
    return "\nweft_workers_count{runtime=\"" + std::to_string(number) + "\"} ";
  };
  std::optional<weft::Runtime> first(weft::RuntimeOptions{.workers = 1});
  const unsigned number = weft::metrics::read().runtimes.at(0).number;
  CHECK(contains(prometheus(weft::metrics::read()), workers(number) + "1\n"));
  const weft::Runtime second({.workers = 2});
  CHECK(contains(prometheus(weft::metrics::read()), workers(number) + "1\n"));
  CHECK(contains(prometheus(weft::metrics::read()), workers(number + 1) + "2\n"));
  first.reset();
  CHECK(!contains(prometheus(weft::metrics::read()), workers(number)));
  CHECK(contains(prometheus(weft::metrics::read()), workers(number + 1) + "2\n"));
}

TEST_CASE("the sums of a pool's wait and run times in the metrics never decrease") {
  Reading reading;
  auto& pool = reading.pools.emplace_back();
  pool.name = "mail";
  pool.has_timings = true;
  const auto sum = [&reading] {
    const std::string page = prometheus(reading);
    const std::string sample = "\nweft_pool_run_time_seconds_sum{pool=\"mail\"} ";
    return std::stod(page.substr(page.find(sample) + sample.size()));
  };
  for (int i = 0; i < 10; ++i) pool.timings.run_time.record(2us);
  double before = sum();
  CHECK(before == 20e-6);
  for (int i = 0; i < 20; ++i) {
    pool.timings.run_time.record(1ns);
    CHECK(sum() > before);
    before = sum();
  }
}

// WEFT_WATCHING_DOCUMENT comes from tests/meson.build.
TEST_CASE("the metrics document lists the name of each metric family, and no other name") {
  std::set<std::string> written;
  const weft::net::Server server([](weft::net::TcpStream&) {}, {.name = "named"});
  std::istringstream page(prometheus(weft::metrics::read()));
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("# TYPE ")) written.insert(line.substr(7, line.find(' ', 7) - 7));
  }
  std::set<std::string> told;
  std::ifstream file(WEFT_WATCHING_DOCUMENT);
  const std::string document(std::istreambuf_iterator<char>(file), {});
  const std::string_view characters = "abcdefghijklmnopqrstuvwxyz_";
  for (std::size_t at = document.find("weft_"); at != std::string::npos;) {
    const std::size_t end = document.find_first_not_of(characters, at);
    told.insert(document.substr(at, end - at));
    at = document.find("weft_", end);
  }
  for (const std::string& name : written) CHECK_MESSAGE(told.contains(name), name);
  // The tests of HTTP servers check the HTTP families.
  std::erase_if(told, [](const std::string& name) { return name.starts_with("weft_http_"); });
  for (const std::string& name : told) CHECK_MESSAGE(written.contains(name), name);
}

TEST_CASE("metrics::read() returns no runtimes and no pools when none exist") {
  const Reading reading = weft::metrics::read();
  CHECK(reading.runtimes.empty());
  CHECK(reading.pools.empty());
  CHECK(contains(prometheus(reading), "# TYPE weft_workers_count gauge\n"));
}

TEST_SUITE_END();
