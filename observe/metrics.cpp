#include <weft/metrics.hpp>

#include <algorithm>
#include <weft/detail/metrics_source.hpp>
#include <weft/detail/named_pools.hpp>

#include "runtime/dump.hpp"
#include "runtime/stats.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/upkeep/census.hpp"

namespace weft::metrics {

namespace {

using namespace std::chrono_literals;
using detail::relaxed;
using detail::WaitReason;
using fibers::Fiber;
using fibers::FiberState;
using scheduler::Durations;
using scheduler::Sampler;
using scheduler::Scheduler;
using std::chrono::nanoseconds;

static_assert(Distribution::kBuckets == Durations::kBuckets);

nanoseconds to_duration(std::uint64_t count) {
  return nanoseconds(static_cast<nanoseconds::rep>(count));
}

// The count is computed from the buckets that were read, so it always equals their sum.
void add(Distribution& to, const Durations& from) {
  for (std::size_t i = 0; i < Distribution::kBuckets; ++i) {
    const std::uint64_t count = from.count(i);
    to.buckets[i] += count;
    to.count += count;
  }
  to.sum += to_duration(from.sum());
  to.max = std::max(to.max, to_duration(from.max()));
}

WorkerMetrics read_worker(Scheduler& scheduler, const scheduler::Desk& desk, std::int64_t now) {
  const scheduler::WorkerCounters& counters = desk.recorder.counters();
  const scheduler::Recorder::Times times = desk.recorder.times(now);
  WorkerMetrics metrics;
  metrics.index = desk.index;
  metrics.is_spare = desk.index >= scheduler.shared().active().usual();
  metrics.is_asleep = scheduler.shared().is_asleep(desk);
  metrics.parked = nanoseconds(std::min(times.parked, times.life));
  metrics.busy = nanoseconds(times.life) - metrics.parked;
  metrics.longest_run = nanoseconds(scheduler.monitor().longest_run(desk.index));
  metrics.finished = counters.finished.get();
  metrics.spawned = counters.spawned.get();
  metrics.switches = counters.switches.get();
  metrics.steals = counters.steals.get();
  metrics.overflows = desk.queue.spills();
  metrics.polls = counters.polls.get();
  metrics.timers = counters.timers.get();
  metrics.sleeps = counters.sleeps.get();
  metrics.wakeups = desk.wakeups();
  metrics.queued = desk.queued_hint();
  return metrics;
}

// Relaxed: the values may be old.
void count_fibers(Scheduler& scheduler, RuntimeMetrics& metrics) {
  constexpr auto kReasons = static_cast<std::size_t>(WaitReason::stack) + 1;
  std::array<std::uint64_t, kReasons> parked{};
  const std::int64_t now = Deadline::now_nanoseconds();
  const auto count = [&](const Fiber& fiber) {
    nanoseconds time{};
    switch (fiber.state.load(relaxed)) {
      case FiberState::free:
        break;
      case FiberState::ready:
        ++metrics.runnable;
        break;
      case FiberState::running:
        ++metrics.running;
        break;
      case FiberState::inlining:
        ++metrics.inlining;
        break;
      case FiberState::parked:
        ++metrics.parked_count;
        time = scheduler::parked_time(fiber, now);
        if (time >= 1min) ++metrics.parked_for_minute;
        if (time >= 1h) ++metrics.parked_for_hour;
        ++parked[std::min<std::size_t>(fiber.reason(), kReasons - 1)];
        break;
    }
    return true;
  };
  metrics.is_counted =
      scheduler.shared().fibers().for_each_until(runtime::report_patience(), count);
  for (std::size_t i = 0; i < kReasons; ++i) {
    if (parked[i] == 0) continue;
    metrics.parked.push_back({to_string(static_cast<WaitReason>(i)), parked[i]});
  }
}

RuntimeMetrics read_runtime(Scheduler& scheduler) {
  RuntimeMetrics metrics;
  metrics.number = scheduler.shared().number();
  metrics.stats = runtime::stats_of(scheduler);
  const std::int64_t now = Deadline::now_nanoseconds();
  for (const scheduler::Desk* desk : scheduler.shared().desks()) {
    metrics.workers.push_back(read_worker(scheduler, *desk, now));
    add(metrics.scheduling_latency, desk->recorder.sampler().latencies());
    add(metrics.run_time, desk->recorder.sampler().runs());
  }
  count_fibers(scheduler, metrics);
  return metrics;
}

}  // namespace

nanoseconds Distribution::percentile(double percent) const noexcept {
  const double rank = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count);
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i + 1 < kBuckets; ++i) {  // The last bucket has no bound.
    passed += buckets[i];
    if (passed > 0 && static_cast<double>(passed) >= rank) {
      return std::min(max, nanoseconds((std::int64_t{1} << i) - 1));
    }
  }
  return max;
}

Reading read() {
  Reading reading;
  (void)scheduler::visit_registry(Deadline::never(), [&reading](Scheduler& scheduler) {
    reading.runtimes.push_back(read_runtime(scheduler));
  });
  detail::read_named_pools(reading.pools);
  detail::MetricsSource::read_all(reading);
  return reading;
}

}  // namespace weft::metrics
