// weft's side of the comparison: one workload per process, one JSON line of results.
// bench/README.md describes the workloads and this contract.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <weft/runtime.hpp>

#include "bench/process_memory.hpp"
#include "bench/process_time.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

namespace {

using namespace std::chrono_literals;

constexpr int kExitRefused = 3;

struct Workload {
  std::string name;
  std::function<Metrics(const Request&)> run;
};

std::function<Metrics(const Request&)> fair_crowd(std::size_t fibers, Waiting how) {
  return [fibers, how](const Request& request) { return fair_turns(request, fibers, how); };
}

std::function<Metrics(const Request&)> light_crowd(std::size_t fibers,
                                                   std::chrono::nanoseconds pause) {
  return [fibers, pause](const Request& request) { return light_sleeps(request, fibers, pause); };
}

std::vector<Workload> named_workloads() {
  return {
      {"W1", spawn_batches},
      {"W1b_adds", flood_adds},
      {"W1b_empty", flood_empty},
      {"adds_alone", adds_alone},
      {"W2", yield_pair},
      {"W2_no_stacks", yield_beside_stackless},
      {"W3_pingpong", ping_pong},
      {"W3_buffered", buffered_items},
      {"W4", contended_mutex},
      {"W5", skynet},
      {"W6_100k", [](const Request& request) { return park_and_wake(request, 100'000); }},
      {"W6_1m", [](const Request& request) { return park_and_wake(request, 1'000'000); }},
      {"M_unstarted", unstarted},
      {"M_burst", memory_after_burst},
      {"W7_100k", [](const Request& request) { return sleepers(request, 100'000, 10); }},
      {"W7_1m", [](const Request& request) { return sleepers(request, 1'000'000, 1); }},
      {"W7b", deadlines_met},
      {"W8a", pool_batches},
      {"W8b", pool_adds},
      {"W8c", pool_sleeps},
      {"W8d_1", [](const Request& request) { return pool_no_ops(request, 1); }},
      {"W8d_8", [](const Request& request) { return pool_no_ops(request, 8); }},
      {"W10", fork_join_fib},
      {"W11_idle", wake_idle},
      {"W11_busy", wake_busy},
      {"W11_mixed", mixed_load},
      {"W12_ready", select_ready},
      {"W12_becomes_ready", select_becomes_ready},
      {"W13_100", fair_crowd(100, Waiting::yield)},
      {"W13_1k", fair_crowd(1'000, Waiting::yield)},
      {"W13_4k", fair_crowd(4'000, Waiting::yield)},
      {"W13_10k", fair_crowd(10'000, Waiting::yield)},
      {"W13_timer_1k", fair_crowd(1'000, Waiting::timer)},
      {"W13_channel_1k", fair_crowd(1'000, Waiting::channel)},
      {"W13_thread_1k", fair_crowd(1'000, Waiting::thread)},
      {"W13_socket_1k", fair_crowd(1'000, Waiting::socket)},
      {"W14_ticker", light_crowd(1, 1ms)},
      {"W14_sleepers", light_crowd(100, 10ms)},
      {"P_timing", timing_run},
      {"P_submit", submit_sleeps},
      {"P_submitters", submit_sleeps_in_parallel},
      {"P_shards", sharded_sleeps},
      {"P_start", pool_start_and_end},
      {"P_task", pool_tasks},
      {"P_stream", stream_tasks},
      {"P_round_trip", round_trips},
  };
}

// Returns the rows that loops generate: pond's grid of users and tasks, and conc's loops.
std::vector<Workload> pool_grids() {
  std::vector<Workload> all;
  for (const auto& [shape, users] : {std::pair{"1x1m", 1UL},
                                     {"100x10k", 100UL},
                                     {"1kx1k", 1'000UL},
                                     {"10kx100", 10'000UL},
                                     {"1mx1", 1'000'000UL}}) {
    for (const auto task : {GridTask::sleep, GridTask::trivial}) {
      const char* kind = task == GridTask::sleep ? "sleep" : "trivial";
      all.push_back({std::string("P_grid_") + shape + "_" + kind,
                     [users = users, task](const Request& request) {
                       return users_and_tasks(request, users, task);
                     }});
    }
  }
  for (const std::size_t elements : {0UL, 1UL, 10UL, 100UL, 1'000UL, 10'000UL, 100'000UL}) {
    all.push_back({"P_each_" + std::to_string(elements),
                   [elements](const Request& request) { return loop_over(request, elements); }});
  }
  return all;
}

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = [] {
    std::vector<Workload> found = named_workloads();
    std::ranges::move(pool_grids(), std::back_inserter(found));
    return found;
  }();
  return all;
}

// "function_pool" is another interface of the pool; rows use it where the interface matters.
const std::vector<std::string> kPools = {"fiber_pool", "bare", "function_pool"};

bool is_pool_workload(const std::string& name) {
  return name.starts_with("W8") || name.starts_with("P_");
}

void print_list() {
  nlohmann::json names = nlohmann::json::array();
  for (const Workload& workload : workloads()) names.push_back(workload.name);
  std::cout << nlohmann::json{{"subject", "weft"}, {"workloads", names}, {"pools", kPools}}
            << std::endl;
}

void run_and_print(const Workload& workload, const Request& request) {
  RuntimeOptions options;
  options.workers = request.workers;
  // A spare worker would start fibers that must be measured unstarted.
  options.monitor = workload.name != std::string_view("M_unstarted");
  Metrics metrics = run(options, [&] { return workload.run(request); });
  metrics["peak_rss_bytes"] = process_memory("VmHWM");
  metrics["cpu_ms"] = cpu_milliseconds();
  std::cout << nlohmann::json{{"subject", "weft"},
                              {"workload", workload.name},
                              {"workers", request.workers},
                              {"pool", request.pool},
                              {"metrics", metrics}}
            << std::endl;
}

int refuse(const std::string& sentence) {
  std::cerr << sentence << '\n';
  return kExitRefused;
}

int main(int argc, char** argv) {
  CLI::App app("Runs one workload of the comparison and prints one JSON line.");
  Request request;
  std::string name;
  bool list = false;
  app.add_option("workload", name, "One of those that --list prints");
  app.add_option("--workers", request.workers, "Worker threads")->check(CLI::Range(1, 1024));
  app.add_option("--scale", request.scale, "Multiplies the counts")->check(CLI::Range(1e-9, 1e3));
  app.add_option("--pool", request.pool, "For pool rows: fiber_pool or bare")
      ->check(CLI::IsMember(kPools));
  app.add_flag("--list", list, "Print the workloads and pools");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    print_list();
    return 0;
  }
  if (request.pool.empty() && is_pool_workload(name)) request.pool = kPools.front();
  if (!request.pool.empty() && !is_pool_workload(name)) {
    return refuse(name + " is not a pool workload: it takes no --pool.");
  }
  if (request.pool == "function_pool" && name != "P_round_trip") {
    return refuse("function_pool is for P_round_trip: elsewhere it is the pool itself.");
  }
  for (const Workload& workload : workloads()) {
    if (workload.name != name) continue;
    try {
      run_and_print(workload, request);
      return 0;
    } catch (const Refusal& refusal) {
      return refuse(refusal.what());
    }
  }
  return refuse("weft does not know the workload '" + name + "'.");
}

}  // namespace

}  // namespace weft::bench

int main(int argc, char** argv) {
  try {
    return weft::bench::main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
