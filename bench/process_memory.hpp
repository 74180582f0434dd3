#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

namespace weft::bench {

// Returns a field of /proc/self/status in bytes: "VmRSS" is the current resident memory, "VmHWM"
// the peak.
[[nodiscard]] inline double process_memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string name;
  std::string rest;
  while (status >> name && std::getline(status, rest)) {
    if (name == field + ":") return std::stod(rest) * 1024;
  }
  throw std::runtime_error("no " + field + " in /proc/self/status");
}

}  // namespace weft::bench
