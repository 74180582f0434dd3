// Writes metrics in the text format of Prometheus.
#include <array>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>
#include <weft/metrics.hpp>

#include "base/utf8.hpp"

namespace weft::metrics {

namespace {

using std::chrono::nanoseconds;

std::string seconds(nanoseconds duration) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.9g",
                      static_cast<double>(duration.count()) / 1e9);
  return text.data();
}

// Appends `name="value",` with the escapes that the format requires. The value must be UTF-8: a
// reader drops the whole page for one invalid byte.
std::string label(std::string_view name, std::string_view value) {
  std::string text(name);
  text.append("=\"");
  while (!value.empty()) {
    const std::string_view character = base::take_character(value);
    if (character == "\n") {
      text.append("\\n");
      continue;
    }
    if (character == "\\" || character == "\"") text.push_back('\\');
    text.append(character);
  }
  return text.append("\",");
}

// The families of a page: samples of the same name follow each other, after their description.
class Page {
 public:
  explicit Page(std::ostream& out) : out_(out) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_ << "# HELP " << name << ' ' << help << "\n# TYPE " << name << ' ' << type << '\n';
  }
  // Each label in `labels` ends in a comma.
  template <class Number>
  void sample(std::string_view labels, const Number& number, std::string_view suffix = "") {
    if (!labels.empty()) labels.remove_suffix(1);
    out_ << name_ << suffix;
    if (!labels.empty()) out_ << '{' << labels << '}';
    out_ << ' ' << number << '\n';
  }

 private:
  std::ostream& out_;
  std::string_view name_;
};

// Adds one number for each element.
template <class Element>
struct Column {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::uint64_t (*number)(const Element& element);
};

constexpr std::array kOfRuntimes = std::to_array<Column<RuntimeMetrics>>({
    {"weft_workers_count", "gauge", "Workers that take part while none is stalled.",
     [](const RuntimeMetrics& m) { return std::uint64_t{m.stats.workers}; }},
    {"weft_active_workers_count", "gauge", "Workers that take part now, with spare ones.",
     [](const RuntimeMetrics& m) { return std::uint64_t{m.stats.active_workers}; }},
    {"weft_spare_workers_count", "gauge", "Spare workers that replace stalled ones now.",
     [](const RuntimeMetrics& m) { return m.stats.spare_workers; }},
    {"weft_live_fibers_count", "gauge", "Fibers that have been spawned and have not ended.",
     [](const RuntimeMetrics& m) { return m.stats.live; }},
    {"weft_fibers_spawned_total", "counter", "Fibers ever spawned.",
     [](const RuntimeMetrics& m) { return m.stats.spawned; }},
    {"weft_fibers_finished_total", "counter", "Fibers that have ended.",
     [](const RuntimeMetrics& m) { return m.stats.finished; }},
    {"weft_stalls_blocked_total", "counter", "Fibers that kept their worker in a system call.",
     [](const RuntimeMetrics& m) { return m.stats.stalls_blocked; }},
    {"weft_stalls_busy_total", "counter", "Fibers that kept their worker by computing.",
     [](const RuntimeMetrics& m) { return m.stats.stalls_busy; }},
    {"weft_stacks_count", "gauge", "Stacks that have been set up, in use or not.",
     [](const RuntimeMetrics& m) { return m.stats.stacks_carved; }},
    {"weft_stacks_resident_count", "gauge", "Set-up stacks whose memory was not freed.",
     [](const RuntimeMetrics& m) { return m.stats.stacks_resident; }},
    {"weft_fiber_records_bytes", "gauge", "Memory of the records of fibers.",
     [](const RuntimeMetrics& m) { return m.stats.record_bytes; }},
    {"weft_memory_goal_bytes", "gauge",
     "The memory that the process should not exceed; 0: no goal.",
     [](const RuntimeMetrics& m) { return m.stats.memory_goal; }},
    {"weft_memory_goal_reached_total", "counter", "Times that the memory goal was reached.",
     [](const RuntimeMetrics& m) { return m.stats.memory_goals_reached; }},
    {"weft_blocking_threads_count", "gauge",
     "Threads that make calls of weft::blocking, or are available for them.",
     [](const RuntimeMetrics& m) { return m.stats.blocking_threads; }},
});

constexpr std::array kOfWorkers = std::to_array<Column<WorkerMetrics>>({
    {"weft_worker_switch_count_total", "counter", "Times the worker switched to another fiber.",
     [](const WorkerMetrics& m) { return m.switches; }},
    {"weft_worker_steal_count_total", "counter",
     "Times the worker took fibers from another worker.",
     [](const WorkerMetrics& m) { return m.steals; }},
    {"weft_worker_overflow_count_total", "counter", "Times the worker's queue was full.",
     [](const WorkerMetrics& m) { return m.overflows; }},
    {"weft_worker_park_count_total", "counter", "Times the worker went to sleep.",
     [](const WorkerMetrics& m) { return m.sleeps; }},
    {"weft_worker_unpark_count_total", "counter", "Times the worker was woken for new work.",
     [](const WorkerMetrics& m) { return m.wakeups; }},
    {"weft_worker_io_poll_count_total", "counter", "Times the worker asked the kernel for events.",
     [](const WorkerMetrics& m) { return m.polls; }},
    {"weft_worker_timer_count_total", "counter", "Waits that ended at their deadline.",
     [](const WorkerMetrics& m) { return m.timers; }},
    {"weft_worker_local_queue_depth", "gauge", "Fibers that are runnable on the worker.",
     [](const WorkerMetrics& m) { return std::uint64_t{m.queued}; }},
});

constexpr std::array kTimesOfWorkers = std::to_array<Column<WorkerMetrics>>({
    {"weft_worker_busy_duration_seconds_total", "counter", "How long the worker was awake.",
     [](const WorkerMetrics& m) { return static_cast<std::uint64_t>(m.busy.count()); }},
    {"weft_worker_park_duration_seconds_total", "counter", "How long the worker was asleep.",
     [](const WorkerMetrics& m) { return static_cast<std::uint64_t>(m.parked.count()); }},
    {"weft_worker_longest_run_seconds", "gauge", "The longest run of a fiber without a switch.",
     [](const WorkerMetrics& m) { return static_cast<std::uint64_t>(m.longest_run.count()); }},
});

constexpr std::array kOfPools = std::to_array<Column<PoolMetrics>>({
    {"weft_pool_capacity", "gauge", "The largest number of tasks that run at once.",
     [](const PoolMetrics& m) { return std::uint64_t{m.capacity}; }},
    {"weft_pool_workers_count", "gauge", "Worker fibers that hold a slot.",
     [](const PoolMetrics& m) { return std::uint64_t{m.stats.live}; }},
    {"weft_pool_busy_count", "gauge", "Worker fibers that run a task.",
     [](const PoolMetrics& m) { return std::uint64_t{m.stats.busy}; }},
    {"weft_pool_released_count", "gauge",
     "Tasks that wait on the pool and have released their slot.",
     [](const PoolMetrics& m) { return std::uint64_t{m.stats.released}; }},
    {"weft_pool_queue_depth", "gauge", "Tasks accepted and not started.",
     [](const PoolMetrics& m) { return std::uint64_t{m.stats.queued}; }},
    {"weft_pool_blocked_count", "gauge", "Callers that wait for room.",
     [](const PoolMetrics& m) { return std::uint64_t{m.stats.blocked}; }},
    {"weft_pool_submitted_total", "counter", "Tasks ever accepted.",
     [](const PoolMetrics& m) { return m.stats.submitted; }},
    {"weft_pool_completed_total", "counter", "Tasks that returned.",
     [](const PoolMetrics& m) { return m.stats.completed; }},
    {"weft_pool_failed_total", "counter", "Tasks that threw.",
     [](const PoolMetrics& m) { return m.stats.failed; }},
    {"weft_pool_cancelled_total", "counter", "Tasks that were accepted and will never run.",
     [](const PoolMetrics& m) { return m.stats.cancelled; }},
    {"weft_pool_rejected_total", "counter", "Refusals, for whatever reason.",
     [](const PoolMetrics& m) { return m.stats.rejected; }},
});

// The labels stay the same when other runtimes or pools come or go, so a series always belongs to
// the same runtime or pool.
std::string label_of(const RuntimeMetrics& runtime) {
  return label("runtime", std::to_string(runtime.number));
}
std::string label_of(const PoolMetrics& pool) {
  const std::string labels = label("pool", pool.name);
  return pool.number == 1 ? labels : labels + label("number", std::to_string(pool.number));
}

template <class Visit>
void for_each_worker(const Reading& reading, Visit visit) {
  for (const RuntimeMetrics& runtime : reading.runtimes) {
    for (const WorkerMetrics& worker : runtime.workers) {
      visit(label_of(runtime) + label("worker", std::to_string(worker.index)), worker);
    }
  }
}

void write_states(Page& page, const Reading& reading) {
  page.family("weft_fibers", "gauge", "Living fibers by what they do.");
  for (const RuntimeMetrics& runtime : reading.runtimes) {
    const std::string labels = label_of(runtime);
    page.sample(labels + label("state", "runnable"), runtime.runnable);
    page.sample(labels + label("state", "running"), runtime.running);
    page.sample(labels + label("state", "inlining"), runtime.inlining);
    page.sample(labels + label("state", "parked"), runtime.parked_count);
  }
  page.family("weft_fibers_parked", "gauge", "Parked fibers by what they wait for.");
  for (const RuntimeMetrics& runtime : reading.runtimes) {
    for (const ParkedFibers& parked : runtime.parked) {
      page.sample(label_of(runtime) + label("reason", parked.reason), parked.count);
    }
  }
}

void write_long_parks(Page& page, const Reading& reading) {
  page.family("weft_fibers_parked_long", "gauge",
              "Fibers that have been parked for so many seconds or longer.");
  for (const RuntimeMetrics& runtime : reading.runtimes) {
    const std::string labels = label_of(runtime);
    page.sample(labels + label("seconds", "60"), runtime.parked_for_minute);
    page.sample(labels + label("seconds", "3600"), runtime.parked_for_hour);
  }
}

void write_distribution(Page& page, const std::string& labels, const Distribution& distribution) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < Distribution::kBuckets; ++i) {
    sum += distribution.buckets[i];
    // Buckets begin at 1 us; the first bucket counts all shorter times.
    if (i < 10) continue;
    const nanoseconds bound((std::int64_t{1} << i) - 1);
    page.sample(labels + label("le", seconds(bound)), sum, "_bucket");
  }
  page.sample(labels + label("le", "+Inf"), distribution.count, "_bucket");
  page.sample(labels, seconds(distribution.sum), "_sum");
  page.sample(labels, distribution.count, "_count");
}

void write_distributions(Page& page, const Reading& reading) {
  page.family("weft_sched_latencies_seconds", "histogram",
              "From when a fiber becomes runnable to its next step; sampled.");
  for (const RuntimeMetrics& runtime : reading.runtimes) {
    write_distribution(page, label_of(runtime), runtime.scheduling_latency);
  }
  page.family("weft_run_times_seconds", "histogram",
              "How long a fiber runs from one switch to the next; sampled.");
  for (const RuntimeMetrics& runtime : reading.runtimes) {
    write_distribution(page, label_of(runtime), runtime.run_time);
  }
}

void write_timings(Page& page, const Reading& reading, std::string_view name, std::string_view help,
                   const Histogram PoolTimings::*member) {
  page.family(name, "summary", help);
  for (const PoolMetrics& pool : reading.pools) {
    if (!pool.has_timings) continue;
    const Histogram& histogram = pool.timings.*member;
    const std::string labels = label_of(pool);
    page.sample(labels + label("quantile", "0.5"), seconds(histogram.percentile(50)));
    page.sample(labels + label("quantile", "0.9"), seconds(histogram.percentile(90)));
    page.sample(labels + label("quantile", "0.99"), seconds(histogram.percentile(99)));
    page.sample(labels, seconds(histogram.sum()), "_sum");
    page.sample(labels, histogram.count(), "_count");
  }
}

// Writes all families of servers and libraries.
void write_families(Page& page, const Reading& reading) {
  for (const Family& family : reading.families) {
    page.family(family.name, family.type, family.help);
    for (const Sample& sample : family.samples) {
      std::string labels;
      for (const auto& [name, value] : sample.labels) labels.append(label(name, value));
      if (family.type == "histogram") {
        write_distribution(page, labels, sample.times);
      } else if (family.name.find("_seconds") != std::string::npos) {
        page.sample(labels, seconds(nanoseconds(sample.value)));
      } else {
        page.sample(labels, sample.value);
      }
    }
  }
}

}  // namespace

void write_prometheus(std::ostream& out, const Reading& reading) {
  Page page(out);
  for (const auto& family : kOfRuntimes) {
    page.family(family.name, family.type, family.help);
    for (const RuntimeMetrics& runtime : reading.runtimes) {
      page.sample(label_of(runtime), family.number(runtime));
    }
  }
  write_states(page, reading);
  write_long_parks(page, reading);
  for (const auto& family : kOfWorkers) {
    page.family(family.name, family.type, family.help);
    for_each_worker(reading, [&](const std::string& labels, const WorkerMetrics& worker) {
      page.sample(labels, family.number(worker));
    });
  }
  for (const auto& family : kTimesOfWorkers) {
    page.family(family.name, family.type, family.help);
    for_each_worker(reading, [&](const std::string& labels, const WorkerMetrics& worker) {
      page.sample(labels, seconds(nanoseconds(family.number(worker))));
    });
  }
  write_distributions(page, reading);
  for (const auto& family : kOfPools) {
    page.family(family.name, family.type, family.help);
    for (const PoolMetrics& pool : reading.pools) {
      page.sample(label_of(pool), family.number(pool));
    }
  }
  write_timings(page, reading, "weft_pool_queue_wait_seconds", "From submit to start of a task.",
                &PoolTimings::queue_wait);
  write_timings(page, reading, "weft_pool_run_time_seconds", "From start to end of a task.",
                &PoolTimings::run_time);
  write_families(page, reading);
}

}  // namespace weft::metrics
