// The clocks of hosts.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "libs/sim/run_state.hpp"

namespace weft::sim {

namespace {

__extension__ using Wide = __int128;
constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

std::int64_t HostClock::at(std::int64_t machine) const noexcept {
  const Wide elapsed = machine - machine_base;
  return own_base + static_cast<std::int64_t>(elapsed * (kSecond + drift) / kSecond);
}

std::int64_t HostClock::machine_time(std::int64_t own) const noexcept {
  if (own <= own_base) return machine_base;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  if (own == kNever) return kNever;
  const Wide rate = kSecond + drift;
  const Wide elapsed = (Wide{own - own_base} * kSecond + rate - 1) / rate;
  return elapsed > kNever - machine_base ? kNever
                                         : machine_base + static_cast<std::int64_t>(elapsed);
}

std::int64_t RunState::host_now() const noexcept { return hosts_[current_host_]->clock.at(now()); }

std::int64_t RunState::machine_time(std::int64_t host_time) const noexcept {
  return hosts_[current_host_]->clock.machine_time(host_time);
}

std::int64_t RunState::wall_clock() const noexcept {
  const HostClock& clock = hosts_[current_host_]->clock;
  return detail::Simulation::kWallClock + clock.at(now()) - beginning_ + clock.wall_offset;
}

void RunState::drift(std::uint32_t number, double parts_per_million) {
  if (number == 0) {
    throw std::invalid_argument(
        "weft::sim::World::clock_drift(): the host is the world itself, "
        "whose clock cannot drift");
  }
  constexpr double kMost = 1e6;
  if (!(parts_per_million > -kMost && parts_per_million <= kMost)) {
    throw std::invalid_argument("weft::sim::World::clock_drift(): parts_per_million = " +
                                std::to_string(parts_per_million) +
                                "; must be in (-1 000 000, 1 000 000]");
  }
  HostClock& clock = hosts_[number]->clock;
  clock.own_base = clock.at(now());
  clock.machine_base = now();
  clock.drift = std::llround(parts_per_million * 1e3);
  if (clock.drift <= -kSecond) clock.drift = -kSecond + 1;
  note(number, "has a clock that drifts by " + std::to_string(clock.drift) + " ns a second");
}

}  // namespace weft::sim
