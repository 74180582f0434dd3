// Simulates the scheduler with a given number of workers, and prints one JSON line.
//
//   scheduling_model fib --size 20 --workers 64 --set search_us=10 --cost line_far=200
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <weft/runtime.hpp>

#include "bench/model/loads.hpp"
#include "bench/model/world.hpp"

namespace weft::bench::model {

namespace {

double part(double some, double all) { return all == 0 ? 0 : some / all; }

nlohmann::json report(const World& world) {
  const Measurements& sums = world.sums;
  const double elapsed = to_nanoseconds(world.clock.now());
  const auto count = static_cast<double>(world.workers.size());
  const auto share = [&](Use use) {
    return to_nanoseconds(sums.used[static_cast<unsigned>(use)]) / (elapsed * count);
  };
  const auto runs = static_cast<double>(sums.runs);
  nlohmann::json stalls;
  for (unsigned i = 0; i < kLineKinds; ++i) {
    const auto kind = static_cast<LineKind>(i);
    stalls[to_string(kind)] = to_nanoseconds(world.memory.stalls(kind)) / (elapsed * count);
  }
  const auto microseconds = [](Time time) { return to_nanoseconds(time) / 1e3; };
  return {
      {"ms", elapsed / 1e6},
      {"runs", sums.runs},
      {"spawned", sums.spawned},
      {"runs_per_us", part(runs, elapsed / 1e3)},
      {"work", share(Use::work)},
      {"fibers", share(Use::fibers)},
      {"search", share(Use::search)},
      {"kernel", share(Use::kernel)},
      {"steals", sums.steals},
      {"stolen", sums.stolen},
      {"looks_per_steal", part(static_cast<double>(sums.looks), static_cast<double>(sums.steals))},
      {"wakes", sums.wakes},
      {"wakes_per_1000", 1e3 * part(static_cast<double>(sums.wakes), runs)},
      {"sleeps", sums.sleeps},
      {"transfers_per_run", part(static_cast<double>(world.memory.transfers()), runs)},
      {"stalls", stalls},
      {"start_p50_us", microseconds(sums.start_delay.at(0.5))},
      {"start_p99_us", microseconds(sums.start_delay.at(0.99))},
      {"response_p50_us", microseconds(sums.response.at(0.5))},
      {"response_p99_us", microseconds(sums.response.at(0.99))}};
}

// `name=value`
std::pair<std::string, std::string> split(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos) throw std::invalid_argument(text + " has no '='");
  return {text.substr(0, at), text.substr(at + 1)};
}

int main(int argc, char** argv) {
  CLI::App app("Simulates the scheduler with many workers.");
  LoadOptions options;
  std::string name;
  std::string cost_file;
  double work_ns = 0;
  double duration_us = 20'000;
  std::vector<std::string> choices;
  std::vector<std::string> changed_costs;
  app.add_option("load", name)->required()->check(CLI::IsMember(load_names()));
  app.add_option("--costs", cost_file, "bench/model/costs.json")->required();
  app.add_option("--workers", options.workers)->check(CLI::Range(1U, kMaxWorkers));
  app.add_option("--size", options.size);
  app.add_option("--rounds", options.rounds);
  app.add_option("--work", work_ns, "Nanoseconds");
  app.add_option("--duration", duration_us, "Microseconds");
  app.add_option("--percent", options.percent);
  app.add_option("--seed", options.seed);
  app.add_option("--set", choices, "A choice of the scheduler, name=value");
  app.add_option("--cost", changed_costs, "Another cost than the file's, name=value");
  CLI11_PARSE(app, argc, argv);
  options.work = from_nanoseconds(work_ns);
  options.duration = from_nanoseconds(duration_us * 1e3);
  Costs costs = Costs::from_file(cost_file);
  for (const auto& change : changed_costs) {
    const auto [cost, value] = split(change);
    costs.set(cost, std::stod(value));
  }
  Policy policy;
  for (const auto& choice : choices) {
    const auto [which, value] = split(choice);
    set_choice(policy, which, value);
  }
  RuntimeOptions runtime;
  runtime.workers = 1;
  const nlohmann::json result = run(runtime, [&] {
    const auto load = make_load(name, options);
    World world(options.workers, costs, policy, *load, options.seed);
    world.run();
    return report(world);
  });
  std::cout << result << '\n';
  return 0;
}

}  // namespace

}  // namespace weft::bench::model

int main(int argc, char** argv) {
  try {
    return weft::bench::model::main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
