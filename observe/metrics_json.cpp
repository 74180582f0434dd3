#include <weft/metrics.hpp>

#include "observe/json.hpp"

namespace weft::metrics {

namespace {

using observe::JsonWriter;
using std::chrono::nanoseconds;

void write(JsonWriter& json, std::string_view name, nanoseconds duration) {
  json.field(name, duration.count());
}

void write(JsonWriter& json, std::string_view name, const Distribution& distribution) {
  json.key(name).begin_object();
  json.field("count", distribution.count);
  write(json, "sum", distribution.sum);
  write(json, "p50", distribution.percentile(50));
  write(json, "p90", distribution.percentile(90));
  write(json, "p99", distribution.percentile(99));
  write(json, "max", distribution.max);
  // Writes pairs of a bucket's exclusive upper bound and its count.
  json.key("buckets").begin_array();
  for (std::size_t i = 0; i < Distribution::kBuckets; ++i) {
    if (distribution.buckets[i] == 0) continue;
    json.begin_array().value(std::uint64_t{1} << i).value(distribution.buckets[i]).end_array();
  }
  json.end_array().end_object();
}

void write(JsonWriter& json, std::string_view name, const Histogram& histogram) {
  json.key(name).begin_object();
  json.field("count", histogram.count());
  write(json, "sum", histogram.sum());
  write(json, "mean", histogram.mean());
  write(json, "p50", histogram.percentile(50));
  write(json, "p90", histogram.percentile(90));
  write(json, "p99", histogram.percentile(99));
  write(json, "max", histogram.max());
  json.end_object();
}

void write_worker(JsonWriter& json, const WorkerMetrics& worker) {
  json.begin_object().field("worker", worker.index).field("is_spare", worker.is_spare);
  json.field("is_asleep", worker.is_asleep);
  write(json, "busy", worker.busy);
  write(json, "parked", worker.parked);
  write(json, "longest_run", worker.longest_run);
  json.field("spawned", worker.spawned).field("finished", worker.finished);
  json.field("switches", worker.switches).field("steals", worker.steals);
  json.field("overflows", worker.overflows).field("polls", worker.polls);
  json.field("timers", worker.timers).field("sleeps", worker.sleeps);
  json.field("wakeups", worker.wakeups).field("queued", worker.queued).end_object();
}

void write_runtime(JsonWriter& json, const RuntimeMetrics& runtime) {
  const RuntimeStats& stats = runtime.stats;
  json.begin_object().field("number", runtime.number);
  json.field("live", stats.live).field("runnable", runtime.runnable);
  json.field("running", runtime.running).field("inlining", runtime.inlining);
  json.field("parked", runtime.parked_count).field("is_counted", runtime.is_counted);
  json.field("parked_for_minute", runtime.parked_for_minute);
  json.field("parked_for_hour", runtime.parked_for_hour);
  json.key("parked_by_reason").begin_object();
  for (const ParkedFibers& parked : runtime.parked) json.field(parked.reason, parked.count);
  json.end_object();
  json.field("spawned", stats.spawned).field("finished", stats.finished);
  json.field("switches", stats.switches).field("steals", stats.steals);
  json.field("worker_sleeps", stats.worker_sleeps).field("worker_wakeups", stats.worker_wakeups);
  json.field("stalls_blocked", stats.stalls_blocked).field("stalls_busy", stats.stalls_busy);
  json.field("usual_workers", stats.workers).field("active_workers", stats.active_workers);
  json.field("spare_workers", stats.spare_workers).field("stacks_carved", stats.stacks_carved);
  json.field("stacks_resident", stats.stacks_resident).field("record_bytes", stats.record_bytes);
  json.field("memory_goal", stats.memory_goal);
  json.field("memory_goals_reached", stats.memory_goals_reached);
  json.field("blocking_threads", stats.blocking_threads);
  write(json, "scheduling_latency", runtime.scheduling_latency);
  write(json, "run_time", runtime.run_time);
  json.key("workers").begin_array();
  for (const WorkerMetrics& worker : runtime.workers) write_worker(json, worker);
  json.end_array().end_object();
}

void write_pool(JsonWriter& json, const PoolMetrics& pool) {
  const PoolStats& stats = pool.stats;
  json.begin_object().field("name", pool.name).field("number", pool.number);
  json.field("capacity", pool.capacity);
  json.field("is_closed", pool.is_closed).field("is_paused", pool.is_paused);
  json.field("live", stats.live).field("busy", stats.busy).field("idle", stats.idle);
  json.field("released", stats.released).field("in_callers", stats.in_callers);
  json.field("queued", stats.queued).field("blocked", stats.blocked);
  json.field("submitted", stats.submitted).field("completed", stats.completed);
  json.field("failed", stats.failed).field("cancelled", stats.cancelled);
  json.field("rejected", stats.rejected).field("started", stats.started);
  json.field("retired", stats.retired);
  if (pool.has_timings) {
    write(json, "queue_wait", pool.timings.queue_wait);
    write(json, "run_time", pool.timings.run_time);
  }
  json.end_object();
}

void write_family(JsonWriter& json, const Family& family) {
  json.begin_object().field("name", family.name).field("type", family.type);
  json.key("samples").begin_array();
  for (const Sample& sample : family.samples) {
    json.begin_object().key("labels").begin_object();
    for (const auto& [name, value] : sample.labels) json.field(name, value);
    json.end_object();
    if (family.type == "histogram") {
      write(json, "times", sample.times);
    } else {
      json.field("value", sample.value);
    }
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace

void write_json(std::ostream& out, const Reading& reading) {
  JsonWriter json(out);
  json.begin_object().key("runtimes").begin_array();
  for (const RuntimeMetrics& runtime : reading.runtimes) write_runtime(json, runtime);
  json.end_array().key("pools").begin_array();
  for (const PoolMetrics& pool : reading.pools) write_pool(json, pool);
  json.end_array().key("families").begin_array();
  for (const Family& family : reading.families) write_family(json, family);
  json.end_array().end_object().flush();
}

}  // namespace weft::metrics
