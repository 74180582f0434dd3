#include "bench/model/costs.hpp"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace weft::bench::model {

namespace {

const std::map<std::string, Time Costs::*>& times() {
  static const std::map<std::string, Time Costs::*> all = {
      {"spawn", &Costs::spawn},
      {"spawn_joinable", &Costs::spawn_joinable},
      {"run_new", &Costs::run_new},
      {"resume", &Costs::resume},
      {"wake", &Costs::wake},
      {"channel", &Costs::channel},
      {"clock", &Costs::clock},
      {"idle_round", &Costs::idle_round},
      {"look", &Costs::look},
      {"pause", &Costs::pause},
      {"steal", &Costs::steal},
      {"wake_call", &Costs::wake_call},
      {"wake_latency", &Costs::wake_latency},
      {"sleep", &Costs::sleep},
      {"poll", &Costs::poll},
      {"poll_event", &Costs::poll_event},
  };
  return all;
}

}  // namespace

void Costs::set(const std::string& name, double value) {
  if (const auto found = times().find(name); found != times().end()) {
    this->*found->second = from_nanoseconds(value);
  } else if (name == "lines_of_new") {
    lines_of_new = value;
  } else if (name == "lines_of_parked") {
    lines_of_parked = value;
  } else if (name == "line_near") {
    distances.near = from_nanoseconds(value);
  } else if (name == "line_far") {
    distances.far = from_nanoseconds(value);
  } else if (name == "cores_per_socket") {
    distances.cores_per_socket = static_cast<unsigned>(value);
  } else if (name == "line_copied") {
    distances.copied = from_nanoseconds(value);
  } else {
    throw std::runtime_error("there is no cost called '" + name + "'");
  }
}

Costs Costs::from_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  const nlohmann::json all = nlohmann::json::parse(file);
  Costs costs;
  for (const auto& [name, entry] : all.at("costs").items()) {
    costs.set(name, entry.at("value").get<double>());
  }
  for (const auto& [name, member] : times()) {
    if (!all.at("costs").contains(name)) throw std::runtime_error(path + " lacks " + name);
  }
  return costs;
}

}  // namespace weft::bench::model
