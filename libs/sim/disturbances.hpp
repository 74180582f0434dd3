// The faults that World::disturb() draws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>
#include <weft/sim.hpp>

#include "libs/sim/chance.hpp"
#include "libs/sim/plan.hpp"

namespace weft::sim {

// One fault of a disturbance, at one host or between two.
struct Fault {
  enum class Kind : std::uint8_t { partition, restart, stop, power_cut };
  Kind kind;
  std::uint32_t one;
  std::uint32_t other;
  std::chrono::nanoseconds at;
  std::chrono::nanoseconds lasts;
  bool is_left_out;  // The plan omits the fault.
};

// Draws faults from the seed, and changes them as the plan requires.
class Disturbances {
 public:
  Disturbances(std::uint64_t seed, const Plan& plan) noexcept
      : chance_(seed, kStream), plan_(plan) {}

  // `hosts` is the number of hosts besides the world. Throws std::invalid_argument for 0.
  [[nodiscard]] std::vector<Fault> draw(const Disturbance& wanted, std::size_t hosts);
  // Returns how many faults were drawn, including faults that the plan omits.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  // Disturbances draw from the seed's stream with this number. core.cpp has the other numbers.
  static constexpr std::uint64_t kStream = 3;

  [[nodiscard]] Fault draw_one(Fault::Kind kind, const Disturbance& wanted, std::size_t hosts);

  Chance chance_;
  const Plan& plan_;
  std::uint64_t count_ = 0;
};

}  // namespace weft::sim
