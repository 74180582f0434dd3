#include "bench/model/memory.hpp"

#include <algorithm>
#include <bit>

namespace weft::bench::model {

const char* to_string(LineKind kind) {
  constexpr std::array<const char*, kLineKinds> kNames = {
      "searching", "bits", "hint", "inject", "napper", "head", "tail", "slot", "counters", "user"};
  return kNames[static_cast<unsigned>(kind)];
}

Time Memory::serve(Line& line, Time takes, Time occupied, Time now) {
  ++transfers_;
  const Time start = std::max(now, line.free_at_);
  line.free_at_ = start + occupied;
  const Time stall = start + takes - now;
  stalls_[static_cast<unsigned>(line.kind_)] += stall;
  return stall;
}

Time Memory::read(Line& line, unsigned core, Time now) {
  if (line.has(core)) return 0;
  const bool is_changed = line.writer_ >= 0;
  const Time takes = line.last_ < 0 ? 0 : distance(static_cast<unsigned>(line.last_), core);
  line.add(core);
  line.writer_ = -1;
  if (line.last_ < 0) line.last_ = static_cast<int>(core);
  if (takes == 0) return 0;
  return serve(line, takes, is_changed ? takes : std::min(takes, distances_.copied), now);
}

// All copies are taken away at once, so the farthest one counts.
Time Memory::farthest_copy(const Line& line, unsigned core) const {
  Time farthest = 0;
  for (unsigned word = 0; word < line.copies_.size(); ++word) {
    for (std::uint64_t left = line.copies_[word]; left != 0; left &= left - 1) {
      const unsigned other = word * 64 + static_cast<unsigned>(std::countr_zero(left));
      if (other == core) continue;
      farthest = std::max(farthest, distance(other, core));
      if (farthest == distances_.far) return farthest;
    }
  }
  return farthest;
}

Time Memory::write(Line& line, unsigned core, Time now) {
  if (line.writer_ == static_cast<int>(core)) return 0;
  const Time takes = farthest_copy(line, core);
  line.copies_ = {};
  line.add(core);
  line.writer_ = line.last_ = static_cast<int>(core);
  return takes == 0 ? 0 : serve(line, takes, takes, now);
}

}  // namespace weft::bench::model
