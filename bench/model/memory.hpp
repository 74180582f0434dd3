// Cache lines that several cores use.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/model/units.hpp"

namespace weft::bench::model {

inline constexpr unsigned kMaxWorkers = 256;

// What stands in a line: so that a run can say which of them its workers waited for.
enum class LineKind : std::uint8_t {
  searching,  // IdleSet: how many search.
  bits,       // IdleSet: who sleeps.
  hint,       // Whether new work should wake somebody, if a line says so; see Policy.
  inject,
  napper,
  head,  // A worker's run queue.
  tail,
  slot,      // A worker's slot, the overflow's counter, the next timer's time.
  counters,  // A worker's counters, of which thieves read the switches.
  user,      // A wait group's, a channel's, and what moves along with a fiber.
};
inline constexpr unsigned kLineKinds = 10;
[[nodiscard]] const char* to_string(LineKind kind);

// Who has a copy of a line. A line that nobody has written yet is in nobody's way.
class Line {
 public:
  explicit Line(LineKind kind = LineKind::user) : kind_(kind) {}

 private:
  friend class Memory;
  using Set = std::array<std::uint64_t, kMaxWorkers / 64>;

  [[nodiscard]] bool has(unsigned core) const {
    return (copies_[core / 64] >> (core % 64) & 1) != 0;
  }
  void add(unsigned core) { copies_[core / 64] |= std::uint64_t{1} << (core % 64); }

  LineKind kind_;
  Set copies_{};
  int writer_ = -1;   // The core that has it alone, or -1.
  int last_ = -1;     // Where it comes from.
  Time free_at_ = 0;  // Until then requests of others are being served.
};

// What an access to a shared line costs beyond that of a line of one's own, which the measured
// costs contain. Requests for one line are served one after the other. What some core has changed
// comes from there, and the line is occupied for as long as that takes; of a line that is only read
// copies are handed out faster.
class Memory {
 public:
  struct Distances {
    Time near = 0;
    Time far = 0;
    unsigned cores_per_socket = kMaxWorkers;
    Time copied = 0;  // Between two cores that get a copy of a line that is only read.
  };

  explicit Memory(const Distances& distances) : distances_(distances) {}

  [[nodiscard]] Time read(Line& line, unsigned core, Time now);
  [[nodiscard]] Time write(Line& line, unsigned core, Time now);
  // One line that `from` has written, where nobody else is in the way.
  [[nodiscard]] Time move(unsigned from, unsigned to) const {
    return from == to ? 0 : distance(from, to);
  }
  [[nodiscard]] std::uint64_t transfers() const { return transfers_; }
  // What all cores together have waited for lines of a kind.
  [[nodiscard]] Time stalls(LineKind kind) const { return stalls_[static_cast<unsigned>(kind)]; }

 private:
  [[nodiscard]] Time distance(unsigned a, unsigned b) const {
    const unsigned size = distances_.cores_per_socket;
    return a / size == b / size ? distances_.near : distances_.far;
  }
  [[nodiscard]] Time farthest_copy(const Line& line, unsigned core) const;
  [[nodiscard]] Time serve(Line& line, Time takes, Time occupied, Time now);

  Distances distances_;
  std::uint64_t transfers_ = 0;
  std::array<Time, kLineKinds> stalls_{};
};

}  // namespace weft::bench::model
