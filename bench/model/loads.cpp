#include "bench/model/loads.hpp"

#include <map>
#include <stdexcept>

namespace weft::bench::model {

namespace {

using Maker = std::unique_ptr<Load> (*)(const LoadOptions&);

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> all = {
      {"batches", &make_batches}, {"fib", &make_fib},       {"skynet", &make_skynet},
      {"pairs", &make_pairs},     {"server", &make_server}, {"bursts", &make_bursts},
  };
  return all;
}

}  // namespace

std::unique_ptr<Load> make_load(const std::string& name, const LoadOptions& options) {
  const auto found = makers().find(name);
  if (found == makers().end()) throw std::invalid_argument("there is no load called " + name);
  return found->second(options);
}

std::vector<std::string> load_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) names.push_back(name);
  return names;
}

}  // namespace weft::bench::model
