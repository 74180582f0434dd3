// The calls that fibers of a simulation make.
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>

#include "libs/sim/core.hpp"
#include "libs/sim/disks.hpp"
#include "libs/sim/disturbances.hpp"
#include "libs/sim/events.hpp"
#include "libs/sim/shelter.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

namespace {

// If the caller runs on the host, which has ended, the caller never runs again.
void leave_host(Core& core, std::uint32_t number) {
  if (number == core.state().current_host()) Core::leave_for_ever();
}

}  // namespace

Network& Network::latency(std::chrono::nanoseconds least, std::chrono::nanoseconds most) {
  if (least.count() < 0 || most < least) {
    throw std::invalid_argument(
        "weft::sim::Network::latency(): least = " + std::to_string(least.count()) +
        " ns, most = " + std::to_string(most.count()) + " ns; must be 0 <= least <= most");
  }
  core_.wires().weather().least_latency = least.count();
  core_.wires().weather().most_latency = most.count();
  return *this;
}

Network& Network::loss(double chance) {
  core_.wires().weather().loss = chance;
  return *this;
}

Network& Network::duplication(double chance) {
  core_.wires().weather().duplication = chance;
  return *this;
}

Network& Network::bandwidth(std::uint64_t bytes_per_second) {
  core_.wires().weather().bandwidth = bytes_per_second;
  return *this;
}

void World::host(std::string_view name, std::function<void()> main) {
  core_.state().add_host(name, std::move(main));
  core_.start(core_.state().find_host(name));
}

void World::crash(std::string_view name) {
  const std::uint32_t number = core_.state().find_host(name);
  core_.end_host(number, true);
  leave_host(core_, number);
}

void World::power_off(std::string_view name) {
  const std::uint32_t number = core_.state().find_host(name);
  core_.end_host(number, false);
  leave_host(core_, number);
}

void World::restart(std::string_view name) {
  const std::uint32_t number = core_.state().find_host(name);
  core_.end_host(number, true);
  core_.start(number);
  leave_host(core_, number);
}

void World::stop(std::string_view name) { core_.stop(core_.state().find_host(name)); }
void World::go_on(std::string_view name) { core_.go_on(core_.state().find_host(name)); }

void World::check_end(std::string_view name) {
  core_.demand_end(core_.state().find_host(name));
  if (!core_.state().is_running()) Core::leave_for_ever();
}

bool World::is_up(std::string_view name) const {
  return core_.state().host(core_.state().find_host(name)).state != HostState::down;
}

void World::partition(std::string_view one, std::string_view other) {
  partition_one_way(one, other);
  partition_one_way(other, one);
}

void World::partition_one_way(std::string_view from, std::string_view to) {
  const Shelter shelter(&core_.state());
  const std::uint32_t source = core_.state().find_host(from);
  const std::uint32_t target = core_.state().find_host(to);
  core_.wires().cut(source, target);
  core_.state().note(source, "reaches " + std::string(to) + " no more");
}

void World::heal() {
  const Shelter shelter(&core_.state());
  core_.wires().heal();
  core_.state().note(0, "heals all partitions");
}

void World::heal(std::string_view one, std::string_view other) {
  const Shelter shelter(&core_.state());
  const std::uint32_t first = core_.state().find_host(one);
  const std::uint32_t second = core_.state().find_host(other);
  core_.wires().heal(first, second);
  core_.wires().heal(second, first);
  core_.state().note(first, "reaches " + std::string(other) + " again");
}

void World::limit_sockets(std::string_view name, std::size_t most) {
  const Shelter shelter(&core_.state());
  core_.wires().limit(core_.state().find_host(name), most);
}

void World::clock_drift(std::string_view name, double parts_per_million) {
  const Shelter shelter(&core_.state());
  core_.state().drift(core_.state().find_host(name), parts_per_million);
}

void World::clock_jump(std::string_view name, std::chrono::nanoseconds by) {
  const Shelter shelter(&core_.state());
  const std::uint32_t number = core_.state().find_host(name);
  core_.state().host(number).clock.wall_offset += by.count();
  core_.state().note(number, "has its clock set by " + seconds_text(by.count()));
}

void World::fail_calls(std::string_view name, const CallFaults& faults) {
  core_.fail_calls(core_.state().find_host(name), faults);
}

void World::put_file(std::string_view name, const std::string& path, std::string bytes) {
  const Shelter shelter(&core_.state());
  core_.disks().put(core_.state().find_host(name), path, std::move(bytes));
}

std::optional<std::string> World::file(std::string_view name, const std::string& path) const {
  const Shelter shelter(&core_.state());
  return core_.disks().contents(core_.state().find_host(name), path);
}

void World::replace_disk(std::string_view name) {
  const std::uint32_t number = core_.state().find_host(name);
  core_.end_host(number, true);
  {
    const Shelter shelter(&core_.state());
    core_.disks().erase(number);
    core_.state().note(number, "gets an empty disk");
  }
  leave_host(core_, number);
}

void World::limit_disk(std::string_view name, std::uint64_t most) {
  const Shelter shelter(&core_.state());
  core_.disks().limit(core_.state().find_host(name), most);
}

void World::let_in(std::string_view kind) {
  const Shelter shelter(&core_.state());
  core_.events().let_in(kind);
}

void World::let_in_host(std::string_view name, std::string_view address,
                        std::chrono::nanoseconds patience) {
  const Shelter shelter(&core_.state());
  if (name.empty() || core_.state().try_find_host(name) || patience.count() < 0) {
    throw std::invalid_argument("weft::sim::World::let_in_host(): name = '" + std::string(name) +
                                "', patience = " + std::to_string(patience.count()) +
                                " ns; the name must be no host of the world, and not empty; the "
                                "patience must be >= 0");
  }
  core_.events().real_hosts().let_in(name, address, patience);
}

namespace {

// Causes the fault, or only waits for the same time if the plan omits it. So nothing else changes.
void bring_about(World& world, const Fault& fault, const std::string& one,
                 const std::string& other) {
  this_fiber::sleep_for(fault.at);
  if (fault.is_left_out) return this_fiber::sleep_for(fault.lasts);
  switch (fault.kind) {
    case Fault::Kind::partition:
      world.partition(one, other);
      this_fiber::sleep_for(fault.lasts);
      return world.heal(one, other);
    case Fault::Kind::restart:
      world.crash(one);
      this_fiber::sleep_for(fault.lasts);
      return world.restart(one);
    case Fault::Kind::power_cut:
      world.power_off(one);
      this_fiber::sleep_for(fault.lasts);
      return world.restart(one);
    case Fault::Kind::stop:
      world.stop(one);
      this_fiber::sleep_for(fault.lasts);
      return world.go_on(one);
  }
}

}  // namespace

void World::disturb(const Disturbance& wanted) {
  RunState& run = core_.state();
  const Shelter shelter(&run);
  for (const Fault& fault : core_.disturbances().draw(wanted, run.hosts().size() - 1)) {
    core_.spawn_helper(
        [this, fault, one = run.host(fault.one).name, other = run.host(fault.other).name] {
          bring_about(*this, fault, one, other);
        });
  }
}

void World::after(std::chrono::nanoseconds delay, std::function<void()> action) {
  core_.spawn_helper([delay, action = std::move(action)] {
    this_fiber::sleep_for(delay);
    detail::Stage::learn_of_all_fibers();
    action();
  });
}

void World::run_for(std::chrono::nanoseconds time) {
  this_fiber::sleep_for(time);
  detail::Stage::learn_of_all_fibers();
}

bool World::run_until(const std::function<bool()>& condition, std::chrono::nanoseconds limit,
                      std::chrono::nanoseconds pause) {
  for (const Deadline deadline = Deadline::after(limit); !condition();) {
    if (deadline.passed()) return false;
    this_fiber::sleep_for(pause);
    detail::Stage::learn_of_all_fibers();
  }
  return true;
}

std::chrono::nanoseconds World::now() const noexcept {
  return std::chrono::nanoseconds(core_.state().elapsed());
}

std::uint64_t World::seed() const noexcept { return core_.state().seed(); }

bool is_simulated() noexcept { return Core::find() != nullptr; }

void settle() { Core::here().settle(); }

void check(bool holds, std::string_view sentence) {
  if (!holds) fail("check failed: " + std::string(sentence));
}

void fail(std::string_view sentence) {
  Core& core = Core::here();
  {
    const Shelter shelter(&core.state());
    core.state().fail(std::string(sentence));
  }
  Core::leave_for_ever();
}

void note(std::string_view text) {
  Core* core = Core::find();
  RunState* run = core == nullptr ? nullptr : &core->state();
  const Shelter shelter(run);
  if (run != nullptr) run->note(run->current_host(), std::string(text));
}

std::uint64_t random(std::uint64_t bound) {
  if (bound == 0) throw std::invalid_argument("weft::sim::random(): bound = 0; must be >= 1");
  return Core::here().state().here().chance.below(bound);
}

bool chance(double probability) { return Core::here().state().here().chance.is_true(probability); }

void compute(std::chrono::nanoseconds time) {
  Core* const core = Core::find();
  if (core == nullptr) return;
  RunState& run = core->state();
  const std::int64_t end = run.machine_time(run.host_now() + time.count());
  if (run.options().workers != 0) {
    const Shelter shelter(&run);
    run.here().computing.push_back(end);
  }
  this_fiber::sleep_for(time);
}

void point() {
  if (Core::find() != nullptr) this_fiber::yield_if_due();
}

}  // namespace weft::sim
