// All accesses to the library's atomics, by cache line and by place in the source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::counting {

// Accesses of one place in the source, or to one line.
struct Counts {
  std::uint64_t loads = 0;
  std::uint64_t stores = 0;
  std::uint64_t exchanges = 0;  // Read-modify-writes, also failed ones.
  // Accesses that would have had to wait for another core: for a copy of what it had written, or
  // for its copy to be given up.
  std::uint64_t fetched = 0;
  std::uint64_t taken = 0;

  [[nodiscard]] std::uint64_t writes() const { return stores + exchanges; }
  [[nodiscard]] std::uint64_t moves() const { return fetched + taken; }
};

struct Site {
  std::string place;     // file:line
  std::string function;  // Which it was inlined into, if the linker knows.
  Counts counts;
};
struct LineUse {
  Counts counts;
  unsigned threads = 0;             // That have used it.
  std::vector<std::string> places;  // Each with the offset of what it uses in the line.
};

// The records between start() and stop(). One at a time.
class Ledger {
 public:
  static void start();
  static void stop();

  [[nodiscard]] static Counts total();
  // Writes to lines that more than one thread has used.
  [[nodiscard]] static std::uint64_t writes_to_shared_lines();
  [[nodiscard]] static std::uint64_t fences();
  // The most used first.
  [[nodiscard]] static std::vector<Site> sites();
  [[nodiscard]] static std::vector<LineUse> lines();
};

}  // namespace weft::counting
