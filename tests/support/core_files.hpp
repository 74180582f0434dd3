// Finds out what the kernel would write to a core file.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>

#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace weft::test {

// Returns whether the system shows the flags of mappings, which bytes_in_core() reads.
inline bool shows_flags_of_mappings() {
  if (kEmulated) {
    skip("an emulator shows flags, but not those that madvise sets");
    return false;
  }
  std::ifstream mappings("/proc/self/smaps");
  for (std::string line; std::getline(mappings, line);) {
    if (line.starts_with("VmFlags:")) return true;
  }
  skip("/proc/self/smaps has no VmFlags, as in an emulator or some sandboxes");
  return false;
}

// Returns how many bytes from `first` to `last` the kernel would write to a core file, in mappings
// that have pages or had some.
inline std::size_t bytes_in_core(const char* first, const char* last) {
  std::ifstream mappings("/proc/self/smaps");
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t sum = 0;
  for (std::string line; std::getline(mappings, line);) {
    char dash = 0;
    std::string protection;
    std::istringstream words(line);
    if (std::size_t from = 0, to = 0; words >> std::hex >> from >> dash >> to >> protection) {
      const bool is_usable = dash == '-' && protection[0] == 'r';
      begin = std::max(from, reinterpret_cast<std::size_t>(first));
      end = is_usable ? std::min(to, reinterpret_cast<std::size_t>(last)) : 0;
    } else if (line.starts_with("VmFlags:") && begin < end &&
               line.find(" dd") == std::string::npos) {
      sum += end - begin;
    }
  }
  return sum;
}

}  // namespace weft::test
