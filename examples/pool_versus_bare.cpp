// Measures the same work with a fiber for each task and with a FiberPool. With the program of
// bench/rivals/go, it also measures goroutines and goroutine pools. Every measurement is a separate
// process, so that its peak memory is separate as well.
//
//   pool_versus_bare
//   pool_versus_bare --go <program> --repetitions 5 --output result.json
//   pool_versus_bare --case mortar:pool                  one measurement, in this process
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/runtime.hpp>

#include "command_line.hpp"
#include "contest.hpp"
#include "contest_report.hpp"
#include "pool_workloads.hpp"

namespace {

using examples::Contender;
using examples::Workload;

struct Options {
  examples::Sizes sizes;
  unsigned repetitions = 5;
  unsigned limit_seconds = 120;
  unsigned budget_seconds = 600;
  std::string single_case;
  std::string go;
  std::string output;
  std::string chart_data;
};

// Returns the command that runs this program with one case.
std::vector<std::string> own_command(const std::string& name, const examples::Sizes& sizes) {
  return {std::filesystem::read_symlink("/proc/self/exe"),
          "--case",
          name,
          "--workers",
          std::to_string(sizes.workers),
          "--tasks",
          std::to_string(sizes.tasks),
          "--batches",
          std::to_string(sizes.batches),
          "--jobs",
          std::to_string(sizes.jobs),
          "--job-ms",
          std::to_string(sizes.job_milliseconds)};
}

Contender own(const std::string& name, const std::string& which, const examples::Sizes& sizes,
              const std::string& metric = "ns_per_task", double factor = 1) {
  return {.name = name, .command = own_command(which, sizes), .metric = metric, .factor = factor};
}

// Adds the contenders of the Go program: bare goroutines and two pools. bench/README.md describes
// the rows; `scale` is a factor on their counts.
void add_go(Workload& workload, const Options& options, const std::string& row, double scale,
            const std::string& metric, double factor) {
  if (options.go.empty()) return;
  const auto command = [&](const std::string& pool) -> std::vector<std::string> {
    return {options.go,  row,
            "--workers", std::to_string(options.sizes.workers),
            "--scale",   fmt::format("{:.9f}", scale),
            "--pool",    pool};
  };
  for (const auto& [name, pool] :
       {std::pair<std::string, std::string>{examples::kGoroutines, "goroutines"},
        {"Go: pool on a channel", "channel"},
        {"Go: ants pool", "ants"}}) {
    workload.contenders.push_back(
        {.name = name, .command = command(pool), .metric = metric, .factor = factor});
  }
}

std::vector<Workload> all_workloads(const Options& options) {
  const examples::Sizes& sizes = options.sizes;
  const auto tasks = static_cast<double>(sizes.tasks);
  Workload mortar{
      .name = "mortar",
      .title = fmt::format("mortar: {} tasks of 100 atomic adds, one submitter, pools of 20",
                           sizes.tasks),
      .contenders = {own("no fibers: the adds alone", "mortar:alone", sizes),
                     own(examples::kBareFibers, "mortar:bare", sizes),
                     own(examples::kPool, "mortar:pool", sizes)}};
  add_go(mortar, options, "W8b", tasks / 1e6, "ms", 1e6 / tasks);

  Workload article{
      .name = "article",
      .title = fmt::format("article: {} batches of 100 empty tasks, pools of 5 with a queue of 10",
                           sizes.batches),
      .contenders = {own(examples::kBareFibers, "article:bare", sizes),
                     own(examples::kPool, "article:pool", sizes)}};
  add_go(article, options, "W8a", static_cast<double>(sizes.batches) / 20'000, "us_per_batch",
         1e3 / 100);

  const double per_job = 1e6 / static_cast<double>(sizes.jobs);
  Workload jobs{
      .name = "jobs",
      .title = fmt::format("jobs: {} jobs that sleep {} ms, a pool of 5 with a queue of 10",
                           sizes.jobs, sizes.job_milliseconds),
      .contenders = {own(examples::kBareFibers, "jobs:bare", sizes, "total_ms", per_job),
                     own(examples::kPool, "jobs:pool", sizes, "total_ms", per_job)}};
  return {std::move(mortar), std::move(article), std::move(jobs)};
}

// Shows progress in one line on a terminal, and in a line per step elsewhere.
void show_progress(const std::string& what) {
  const bool live = ::isatty(STDERR_FILENO) == 1;
  fmt::print(stderr, "{}{}{}", live ? "\r\033[K" : "", what, live ? "" : "\n");
  std::fflush(stderr);
}

void end_progress() {
  if (::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\033[K");
}

template <class Write>
void write_file(const std::string& path, Write write) {
  if (path.empty()) return;
  std::ofstream out(path);
  write(out);
  if (!out.flush()) throw std::runtime_error(fmt::format("cannot write {}", path));
}

int compare(const Options& options) {
  std::vector<Workload> workloads = all_workloads(options);
  examples::run_contest(workloads,
                        {.repetitions = options.repetitions,
                         .limit = std::chrono::seconds(options.limit_seconds),
                         .budget = std::chrono::seconds(options.budget_seconds)},
                        show_progress);
  end_progress();
  fmt::print("{} workers, medians; each measurement is a fresh process\n\n", options.sizes.workers);
  bool failed = false;
  for (const Workload& workload : workloads) {
    fmt::print("{}\n", workload.name == "jobs" ? table_of_jobs(workload) : table_of(workload));
    for (const Contender& contender : workload.contenders) failed |= !contender.failure.empty();
  }
  write_file(options.output, [&](std::ostream& out) {
    out << nlohmann::json{{"workers", options.sizes.workers},
                          {"repetitions", options.repetitions},
                          {"workloads", examples::json_of(workloads)}}
               .dump(2)
        << '\n';
  });
  workloads.pop_back();  // The chart omits jobs, which only sleep.
  write_file(options.chart_data,
             [&](std::ostream& out) { examples::write_chart_data(out, workloads); });
  return failed ? examples::kFailed : 0;
}

int run(Options& options) {
  if (!options.single_case.empty()) {
    const auto metrics = examples::run_case(options.single_case, options.sizes);
    fmt::print("{}\n", nlohmann::json{{"case", options.single_case}, {"metrics", metrics}}.dump());
    return 0;
  }
  // All contenders get weft's default number of workers.
  if (options.sizes.workers == 0) options.sizes.workers = weft::Runtime().workers();
  return compare(options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line(
      "pool_versus_bare",
      "Compares a fiber for each task with a FiberPool, and with Go if asked to.");
  line.add("--workers", options.sizes.workers, 0, 1024, "worker threads; 0: one per processor");
  line.add("--tasks", options.sizes.tasks, 1, 20'000'000, "tasks of mortar's workload");
  line.add("--batches", options.sizes.batches, 1, 10'000'000, "batches of the article's workload");
  line.add("--jobs", options.sizes.jobs, 1, 1'000'000, "sleeping jobs");
  line.add("--job-ms", options.sizes.job_milliseconds, 1, 60'000,
           "milliseconds that each job sleeps");
  line.add("--repetitions", options.repetitions, 1, 1000, "measurements of each");
  line.add("--limit", options.limit_seconds, 1, 86'400, "seconds that one measurement may take");
  line.add("--budget", options.budget_seconds, 0, 86'400,
           "seconds after which a workload begins no more rounds");
  line.add("--go", options.go, "the program built from bench/rivals/go");
  line.expect_file("--go");
  line.add("--output", options.output, "a file for all results, as JSON");
  line.add("--chart-data", options.chart_data, "a file for pool_versus_bare.gp to draw");
  line.add("--case", options.single_case,
           "run only this, here: mortar:alone, or mortar, article, jobs with :bare, :pool");
  return line.run(argc, argv, [&] { return run(options); });
}
