// Starts, crashes, stops and disturbances of hosts.
#include <algorithm>
#include <stdexcept>
#include <utility>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "libs/sim/core.hpp"
#include "libs/sim/disks.hpp"
#include "libs/sim/faults.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

namespace {

// The number of the first stream of a seed for hosts; core.cpp has others.
constexpr std::uint64_t kFirstHostStream = 1000;
// The number of the first stream for failing calls, above the streams of the network and of disks.
constexpr std::uint64_t kFirstFailureStream = std::uint64_t{1} << 63;

}  // namespace

void Core::add_host(std::string_view name, std::function<void()> main) {
  const Shelter shelter(this);
  const auto number = static_cast<std::uint32_t>(hosts_.size());
  if (name.empty() || !numbers_.try_emplace(std::string(name), number).second) {
    throw std::invalid_argument("weft::sim::World::host(): name = '" + std::string(name) +
                                "'; must be unused and not empty");
  }
  auto host = std::make_unique<Host>(Host{.clock{kBeginning, kBeginning},
                                          .failure_chance{seed_, kFirstFailureStream + number},
                                          .chance{seed_, kFirstHostStream + number}});
  host->name = name;
  host->main = std::move(main);
  host->state = number == 0 ? HostState::up : HostState::down;
  hosts_.push_back(std::move(host));
}

std::optional<std::uint32_t> Core::try_find_host(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t Core::find_host(std::string_view name) const {
  if (const auto found = try_find_host(name)) return *found;
  throw std::invalid_argument("weft::sim: there is no host '" + std::string(name) +
                              "'; add it by World::host()");
}

void Core::start(std::uint32_t number) {
  const Shelter shelter(this);
  Host& host = *hosts_[number];
  host.state = HostState::up;
  wires_->power_on(number);
  note(number, "starts");
  spawn_host_ = number;
  go([this, number, &main = host.main] {
    detail::Stage::learn_of_all_fibers();  // The fibers of a former life never end.
    main();
    note(number, "main returns");
  });
  spawn_host_.reset();
}

void Core::end_host(std::uint32_t number, bool has_power) {
  if (number == 0)
    throw std::invalid_argument("weft::sim: the host is the world itself, which cannot end");
  Host& host = *hosts_[number];
  if (host.state == HostState::down) return;
  {
    const Shelter shelter(this);
    note(number, has_power ? "crashes" : "loses power");
    host.state = HostState::down;
    ++host.life;
    host.actors = 0;
    host.computing.clear();
    host.held.clear();
    std::erase_if(ready_, [this](const Candidate& each) { return is_dead(*each.actor); });
    resumable_ = kNone;
    wires_->end_host(number, has_power);
    disks_->end_host(number, has_power);
  }
  if (number == current_host_) leave_for_ever();
}

void Core::stop(std::uint32_t number) {
  if (number == 0)
    throw std::invalid_argument("weft::sim: the host is the world itself, which cannot be stopped");
  Host& host = *hosts_[number];
  if (host.state != HostState::up) return;
  {
    const Shelter shelter(this);
    note(number, "is stopped");
    host.state = HostState::stopped;
    std::erase_if(ready_, [&](const Candidate& each) {
      if (each.actor->host != number) return false;
      host.held.push_back(each.fiber);
      return true;
    });
    resumable_ = kNone;
  }
  if (number == current_host_) this_fiber::yield();
}

void Core::go_on(std::uint32_t number) {
  Host& host = *hosts_[number];
  if (host.state != HostState::stopped) return;
  const Shelter shelter(this);
  note(number, "goes on");
  host.state = HostState::up;
  for (fibers::Fiber* fiber : std::exchange(host.held, {})) {
    ready_.push_back({fiber, &actors_.at(fiber), false, now_});
  }
}

namespace {

// One fault of a disturbance.
struct Fault {
  enum class Kind : std::uint8_t { partition, restart, stop, power_cut };
  Kind kind;
  std::string one;
  std::string other;
  std::chrono::nanoseconds at;
  std::chrono::nanoseconds lasts;
};

// An omitted fault takes the same time, so that everything else remains as it was.
void bring_about(World& world, const Fault& fault, bool is_left_out) {
  this_fiber::sleep_for(fault.at);
  if (is_left_out) return this_fiber::sleep_for(fault.lasts);
  switch (fault.kind) {
    case Fault::Kind::partition:
      world.partition(fault.one, fault.other);
      this_fiber::sleep_for(fault.lasts);
      return world.heal(fault.one, fault.other);
    case Fault::Kind::restart:
      world.crash(fault.one);
      this_fiber::sleep_for(fault.lasts);
      return world.restart(fault.one);
    case Fault::Kind::power_cut:
      world.power_off(fault.one);
      this_fiber::sleep_for(fault.lasts);
      return world.restart(fault.one);
    case Fault::Kind::stop:
      world.stop(fault.one);
      this_fiber::sleep_for(fault.lasts);
      return world.go_on(fault.one);
  }
}

}  // namespace

void Core::disturb(World& world, const Disturbance& wanted) {
  const Shelter shelter(this);
  const std::size_t hosts = hosts_.size() - 1;
  if (hosts == 0)
    throw std::invalid_argument("weft::sim::World::disturb(): there are no hosts; add them first");
  const auto draw_host = [&] { return 1 + disturbance_.below(hosts); };
  const auto add_some = [&](Fault::Kind kind, unsigned most) {
    const std::uint64_t count = disturbance_.below(std::uint64_t{most} + 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t one = draw_host();
      std::size_t other = draw_host();
      if (other == one) other = other % hosts + 1;  // A partition of a single host has no effect.
      const std::uint64_t number = faults_++;
      const std::int64_t divisor = number < plan_.divisors.size() ? plan_.divisors[number] : 1;
      const auto at = disturbance_.between(0, wanted.within.count()) / divisor;
      const auto drawn = disturbance_.between(wanted.shortest.count(), wanted.longest.count());
      const auto lasts = std::max(drawn / divisor, std::min(drawn, wanted.shortest.count()));
      const bool is_left_out = number < plan_.left_out.size() && plan_.left_out[number];
      const Fault fault{kind, hosts_[one]->name, hosts_[other]->name, std::chrono::nanoseconds(at),
                        std::chrono::nanoseconds(lasts)};
      spawn_helper([&world, fault, is_left_out] { bring_about(world, fault, is_left_out); });
    }
  };
  add_some(Fault::Kind::partition, wanted.partitions);
  add_some(Fault::Kind::restart, wanted.restarts);
  add_some(Fault::Kind::stop, wanted.stops);
  add_some(Fault::Kind::power_cut, wanted.power_cuts);
}

}  // namespace weft::sim
