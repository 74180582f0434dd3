#include "pool_workloads.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

namespace examples {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::uint64_t kAddsPerTask = 100;
constexpr std::size_t kMortarCapacity = 20;
constexpr std::uint64_t kBatch = 100;
constexpr std::size_t kArticleCapacity = 5;
constexpr std::size_t kArticleQueue = 10;
constexpr std::uint64_t kWarmUpPart = 20;  // The warm-up is a twentieth of the work.

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// These two types start tasks in different ways. The workloads pass the same callables to both
// types.
struct Bare {
  template <class F>
  void operator()(F&& task) {
    weft::go(std::forward<F>(task));
  }
};
struct Pooled {
  template <class F>
  void operator()(F&& task) {
    // A full pool parks the submitter, so a refusal is a fault of the pool.
    pool.go(std::forward<F>(task));
  }
  weft::FiberPool& pool;
};

// Runs `work` with fibers or a pool, as the form requires. The measured time may include the pool's
// construction, but not its destruction.
template <class Work>
void with_starter(bool pooled, std::size_t capacity, std::size_t queue, Work work) {
  if (!pooled) return work(Bare{});
  weft::FiberPool pool({.capacity = capacity, .queue_capacity = queue});
  work(Pooled{pool});
}

// ---- Mortar's workload: one submitter, tasks that add to one counter

void add_many(std::atomic<std::uint64_t>& counter) {
  for (std::uint64_t i = 0; i < kAddsPerTask; ++i) counter.fetch_add(1);
}

double mortar(const Sizes& sizes, bool pooled) {
  std::atomic<std::uint64_t> counter{0};
  double elapsed = 0;
  const auto start = Clock::now();
  with_starter(pooled, kMortarCapacity, kMortarCapacity, [&](auto start_task) {
    weft::WaitGroup running;
    running.add(sizes.tasks);
    for (std::uint64_t i = 0; i < sizes.tasks; ++i) {
      start_task([&counter, &running] {
        add_many(counter);
        running.done();
      });
    }
    running.wait();
    elapsed = nanoseconds_since(start);
  });
  if (counter != sizes.tasks * kAddsPerTask) throw std::logic_error("mortar: adds are missing");
  return elapsed / static_cast<double>(sizes.tasks);
}

// Returns the cost of the adds without fibers: a lower bound for the other forms on one worker.
double mortar_alone(const Sizes& sizes) {
  std::atomic<std::uint64_t> counter{0};
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < sizes.tasks; ++i) add_many(counter);
  return nanoseconds_since(start) / static_cast<double>(sizes.tasks);
}

// ---- The article's batches: 100 empty tasks, and a wait for all of them

double article(const Sizes& sizes, bool pooled) {
  double elapsed = 0;
  with_starter(pooled, kArticleCapacity, kArticleQueue, [&](auto start_task) {
    weft::WaitGroup running;
    const auto run_batches = [&](std::uint64_t batches) {
      for (std::uint64_t batch = 0; batch < batches; ++batch) {
        running.add(kBatch);
        for (std::uint64_t i = 0; i < kBatch; ++i) start_task([&running] { running.done(); });
        running.wait();
      }
    };
    run_batches(std::max<std::uint64_t>(1, sizes.batches / kWarmUpPart));
    const auto start = Clock::now();
    run_batches(sizes.batches);
    elapsed = nanoseconds_since(start);
  });
  return elapsed / static_cast<double>(sizes.batches * kBatch);
}

// ---- The article's jobs: each sleeps; a pool bounds how many do so at the same time

// Holds the times that jobs record. All times count from the start of the first submission.
struct JobTimes {
  std::atomic<std::int64_t> running{0};
  std::atomic<std::int64_t> most_at_once{0};
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::int64_t> first_ns{0};
  std::atomic<std::int64_t> sum_ns{0};
  Clock::time_point start = Clock::now();

  void run(std::chrono::milliseconds length) {
    const std::int64_t now_running = ++running;
    std::int64_t most = most_at_once;
    while (most < now_running && !most_at_once.compare_exchange_weak(most, now_running)) {
    }
    weft::this_fiber::sleep_for(length);
    --running;
    const auto elapsed = static_cast<std::int64_t>(nanoseconds_since(start));
    sum_ns += elapsed;
    if (done.fetch_add(1) == 0) first_ns = elapsed;
  }
};

json jobs(const Sizes& sizes, bool pooled) {
  const std::chrono::milliseconds length(sizes.job_milliseconds);
  JobTimes times;
  double total = 0;
  with_starter(pooled, kArticleCapacity, kArticleQueue, [&](auto start_task) {
    weft::WaitGroup running;
    running.add(sizes.jobs);
    for (std::uint64_t i = 0; i < sizes.jobs; ++i) {
      start_task([&] {
        times.run(length);
        running.done();
      });
    }
    running.wait();
    total = nanoseconds_since(times.start);
  });
  if (times.done != sizes.jobs) throw std::logic_error("jobs: some are missing");
  const auto count = static_cast<double>(sizes.jobs);
  return {{"first_ms", static_cast<double>(times.first_ns) / 1e6},
          {"average_ms", static_cast<double>(times.sum_ns) / 1e6 / count},
          {"total_ms", total / 1e6},
          {"most_at_once", times.most_at_once.load()}};
}

// ---- Cases

// Returns the kernel's VmHWM in bytes, or 0 if there is no /proc.
std::uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

json figures_of(std::string_view name, const Sizes& sizes) {
  if (name == "mortar:alone") return {{"ns_per_task", mortar_alone(sizes)}};
  const std::size_t colon = name.find(':');
  const std::string_view workload = name.substr(0, colon);
  const std::string_view form = colon == name.npos ? "" : name.substr(colon + 1);
  const bool pooled = form == "pool";
  if (pooled || form == "bare") {
    if (workload == "mortar") return {{"ns_per_task", mortar(sizes, pooled)}};
    if (workload == "article") return {{"ns_per_task", article(sizes, pooled)}};
    if (workload == "jobs") return jobs(sizes, pooled);
  }
  throw std::invalid_argument(
      fmt::format("--case {}: the cases are mortar:alone and mortar, article or jobs with :bare or "
                  ":pool",
                  name));
}

}  // namespace

nlohmann::json run_case(std::string_view name, const Sizes& sizes) {
  // Measured loops compute for a long time on purpose, so stalls are not reported.
  const weft::RuntimeOptions options{
      .workers = sizes.workers, .on_stall = [](const auto&) {}, .stall_calls = false};
  json figures = weft::run(options, [&] { return figures_of(name, sizes); });
  figures["peak_rss_bytes"] = peak_memory();
  return figures;
}

}  // namespace examples
