// Makes a measured program from a list of workloads, by the contract of bench/README.md.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/rivals/measure.hpp"

namespace rivals {

struct Workload {
  std::string_view name;
  std::function<Metrics(const Request&)> run;
};

struct Program {
  const char* subject;  // The name on the command line of bench/compare.
  const char* title;    // The name that its users use.
  std::vector<Workload> workloads;
};

inline void print_list(const Program& program) {
  std::printf("{\"subject\":\"%s\",\"workloads\":[", program.subject);
  const char* separator = "";
  for (const Workload& workload : program.workloads) {
    std::printf("%s\"%s\"", std::exchange(separator, ","), workload.name.data());
  }
  std::printf("],\"pools\":[]}\n");
}

inline void print_result(const Program& program, std::string_view name, const Request& request,
                         const Metrics& metrics) {
  std::printf("{\"subject\":\"%s\",\"workload\":\"%s\",\"workers\":%d,\"pool\":\"\"",
              program.subject, name.data(), request.workers);
  const char* separator = ",\"metrics\":{";
  for (const auto& [metric, value] : metrics) {
    std::printf("%s\"%s\":%.6g", std::exchange(separator, ","), metric.c_str(), value);
  }
  std::printf("}}\n");
}

// Reads the options, which follow the workload; each has one value.
inline Request parse_options(const Program& program, int argc, char** argv) {
  Request request;
  for (int i = 2; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 == argc) throw std::runtime_error(std::string(option) + " lacks a value.");
    if (option == "--workers") {
      request.workers = std::atoi(argv[i + 1]);
    } else if (option == "--scale") {
      request.scale = std::atof(argv[i + 1]);
    } else if (option == "--pool") {
      throw Refusal(std::string(program.title) + " has no pools.");
    } else {
      throw std::runtime_error("Unknown option " + std::string(option) + ".");
    }
  }
  if (request.workers < 1 || request.scale <= 0) {
    throw std::runtime_error("Workers and scale are positive.");
  }
  return request;
}

inline void run_workload(const Program& program, int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("Usage: WORKLOAD [--workers N] [--scale F].");
  const std::string_view name = argv[1];
  if (name == "--list") return print_list(program);
  const Request request = parse_options(program, argc, argv);
  const auto& all = program.workloads;
  const auto found = std::find_if(all.begin(), all.end(), [&](auto& w) { return w.name == name; });
  if (found == all.end()) {
    throw Refusal(std::string(program.title) + " does not do " + std::string(name) + ".");
  }
  Metrics metrics = found->run(request);
  metrics.emplace_back("peak_rss_bytes", kernel_bytes("/proc/self/status", "VmHWM"));
  metrics.emplace_back("cpu_ms", cpu_milliseconds());
  print_result(program, name, request, metrics);
}

// Runs the program; returns the exit code for main().
inline int exit_code_of(const Program& program, int argc, char** argv) {
  constexpr int kExitFailed = 1;
  constexpr int kExitRefused = 3;
  try {
    run_workload(program, argc, argv);
    return 0;
  } catch (const Refusal& refusal) {
    std::fprintf(stderr, "%s\n", refusal.what());
    return kExitRefused;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kExitFailed;
  }
}

// Scales the number of calls, which grows by the golden ratio per step.
inline int scaled_fib(const Request& request) {
  int n = 27;
  for (double factor = request.scale; factor < 0.7 && n > 2; factor *= 1.618) --n;
  return n;
}

inline void expect_fib(int n, std::int64_t value) {
  std::int64_t a = 0;
  std::int64_t b = 1;
  for (int i = 0; i < n; ++i) a = std::exchange(b, a + b);
  expect("fib", value, a);
}

// Returns a power of ten, so that a scaled tree is still 10-ary everywhere.
inline std::int64_t scaled_leaves(const Request& request) {
  std::int64_t leaves = 1;
  while (leaves * 10 <= request.count(1'000'000)) leaves *= 10;
  return leaves;
}

}  // namespace rivals
