// A pool with a few workers runs a batch of slow jobs. The program measures when the first and the
// last job end, the average time per job, and how long jobs wait and run. Meanwhile it shows how
// many jobs are running and done: every 20 ms in place on a terminal, otherwise in a line every 200
// ms.
//
//   timed_jobs --jobs 100 --job-ms 100 --workers 5
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;
using std::chrono_literals::operator""ms;

constexpr unsigned kLooksPerLine = 10;

struct Options {
  unsigned jobs = 100;
  unsigned job_milliseconds = 100;
  unsigned workers = 5;
  unsigned queue = 10;
};

struct Outcome {
  weft::PoolTimings timings;
  std::size_t most_at_once = 0;
};

// Shows the numbers that the pool reports every 20 ms.
class Display {
 public:
  explicit Display(const Options& options) : options_(options) {}

  void show(const weft::PoolStats& stats) {
    most_at_once_ = std::max(most_at_once_, stats.busy);
    if (!is_live_ && ++looks_ % kLooksPerLine != 0) return;
    fmt::print("{}wip {:>4}  queued {:>4}  count {:>6} of {}{}", is_live_ ? "\r" : "", stats.busy,
               stats.queued, stats.completed, options_.jobs, is_live_ ? "" : "\n");
    std::fflush(stdout);
  }
  void finish() const {
    if (is_live_) fmt::print("\n");
  }

  [[nodiscard]] std::size_t most_at_once() const { return most_at_once_; }

 private:
  const Options& options_;
  const bool is_live_ = ::isatty(STDOUT_FILENO) == 1;
  unsigned looks_ = 0;
  std::size_t most_at_once_ = 0;
};

Outcome run_jobs(const Options& options) {
  Display display(options);
  weft::FiberPool pool(
      {.capacity = options.workers,
       .queue_capacity = options.queue,
       .on_tick = {20ms, [&display](const weft::PoolStats& stats) { display.show(stats); }},
       .timings = true});
  for (unsigned i = 0; i < options.jobs; ++i) {
    const std::error_code refused = pool.submit(
        [&] { weft::this_fiber::sleep_for(std::chrono::milliseconds(options.job_milliseconds)); });
    if (refused) throw std::system_error(refused);
  }
  pool.close(weft::Close::drain);
  pool.join();  // Returns after the last tick.
  display.finish();
  return {pool.timings(), display.most_at_once()};
}

// Checks lower bounds, which are also true on a busy machine: no job is shorter than its sleep, and
// a round with one job per worker takes at least as long as one job.
void check(const Options& options, const Outcome& outcome) {
  const std::chrono::milliseconds job(options.job_milliseconds);
  const unsigned rounds = (options.jobs + options.workers - 1) / options.workers;
  const weft::PoolTimings& timings = outcome.timings;
  if (timings.run_time.count() != options.jobs) throw std::logic_error("a job is missing");
  if (timings.first < job || timings.run_time.min() < job) {
    throw std::logic_error("a job was done too early");
  }
  if (timings.total < rounds * job) throw std::logic_error("too many jobs at once");
  if (outcome.most_at_once > options.workers) throw std::logic_error("too many workers");
}

void print(const char* what, Milliseconds time) {
  fmt::print("{:<24}{:>12.3f} ms\n", what, time.count());
}

int run(const Options& options) {
  const Outcome outcome = weft::run([&] { return run_jobs(options); });
  check(options, outcome);
  const weft::PoolTimings& timings = outcome.timings;
  fmt::print("{} jobs of {} ms, {} workers\n", options.jobs, options.job_milliseconds,
             options.workers);
  print("first", timings.first);
  print("average", timings.average);
  print("total", timings.total);
  print("longest wait for a slot", timings.queue_wait.max());
  print("longest run", timings.run_time.max());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("timed_jobs", "Runs jobs in a pool and tells when they are done.");
  line.add("--jobs", options.jobs, 1, 10'000'000, "how many");
  line.add("--job-ms", options.job_milliseconds, 0, 60'000, "how long each takes");
  line.add("--workers", options.workers, 1, 1'000'000, "how many are worked on at once");
  line.add("--queue", options.queue, 0, 10'000'000,
           "how many wait in the pool; others wait in front of it");
  return line.run(argc, argv, [&] { return run(options); });
}
