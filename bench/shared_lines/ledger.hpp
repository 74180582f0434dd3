// Records all accesses to the library's atomics, by cache line and by place in the source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::counting {

// Counts the accesses by one place in the source, or to one cache line.
struct Counts {
  std::uint64_t loads = 0;
  std::uint64_t stores = 0;
  std::uint64_t exchanges = 0;  // Read-modify-writes, including failed ones.
  // Accesses that would have waited for another core: for a copy of what that core had written, or
  // until that core had given up its copy.
  std::uint64_t fetched = 0;
  std::uint64_t taken = 0;

  [[nodiscard]] std::uint64_t writes() const { return stores + exchanges; }
  [[nodiscard]] std::uint64_t moves() const { return fetched + taken; }
};

struct Site {
  std::string place;     // file:line
  std::string function;  // The function into which the place was inlined, if known.
  Counts counts;
};
struct LineUse {
  Counts counts;
  unsigned threads = 0;             // Threads that have used the line.
  std::vector<std::string> places;  // Each with its offset in the line.
};

// Records the accesses between start() and stop(). Only one recording may run at a time.
class Ledger {
 public:
  static void start();
  static void stop();

  [[nodiscard]] static Counts total();
  // Returns the number of writes to lines that more than one thread has used.
  [[nodiscard]] static std::uint64_t writes_to_shared_lines();
  [[nodiscard]] static std::uint64_t fences();
  // Returns the sites, with the most used one first.
  [[nodiscard]] static std::vector<Site> sites();
  [[nodiscard]] static std::vector<LineUse> lines();
};

}  // namespace weft::counting
