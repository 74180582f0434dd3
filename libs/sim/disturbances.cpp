#include "libs/sim/disturbances.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft::sim {

std::vector<Fault> Disturbances::draw(const Disturbance& wanted, std::size_t hosts) {
  if (hosts == 0)
    throw std::invalid_argument("weft::sim::World::disturb(): there are no hosts; add them first");
  std::vector<Fault> faults;
  const auto add_some = [&](Fault::Kind kind, unsigned most) {
    const std::uint64_t count = chance_.below(std::uint64_t{most} + 1);
    for (std::uint64_t i = 0; i < count; ++i) faults.push_back(draw_one(kind, wanted, hosts));
  };
  add_some(Fault::Kind::partition, wanted.partitions);
  add_some(Fault::Kind::restart, wanted.restarts);
  add_some(Fault::Kind::stop, wanted.stops);
  add_some(Fault::Kind::power_cut, wanted.power_cuts);
  return faults;
}

Fault Disturbances::draw_one(Fault::Kind kind, const Disturbance& wanted, std::size_t hosts) {
  const std::uint64_t one = 1 + chance_.below(hosts);
  std::uint64_t other = 1 + chance_.below(hosts);
  if (other == one) other = other % hosts + 1;  // A partition of a single host has no effect.
  const std::uint64_t number = count_++;
  const std::int64_t divisor = number < plan_.divisors.size() ? plan_.divisors[number] : 1;
  const auto at = chance_.between(0, wanted.within.count()) / divisor;
  const auto drawn = chance_.between(wanted.shortest.count(), wanted.longest.count());
  const auto lasts = std::max(drawn / divisor, std::min(drawn, wanted.shortest.count()));
  return {kind,
          static_cast<std::uint32_t>(one),
          static_cast<std::uint32_t>(other),
          std::chrono::nanoseconds(at),
          std::chrono::nanoseconds(lasts),
          number < plan_.left_out.size() && plan_.left_out[number]};
}

}  // namespace weft::sim
