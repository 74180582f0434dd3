// Starts, crashes and stops of hosts.
#include <stdexcept>
#include <utility>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "libs/sim/core.hpp"
#include "libs/sim/disks.hpp"
#include "libs/sim/shelter.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

void Core::start(std::uint32_t number) {
  const Shelter shelter(&state_);
  Host& host = state_.host(number);
  host.state = HostState::up;
  wires_->power_on(number);
  state_.note(number, "starts");
  spawn_host_ = number;
  go([this, number, &main = host.main] {
    detail::Stage::learn_of_all_fibers();  // Fibers from before a crash never end.
    main();
    state_.note(number, "main returns");
  });
  spawn_host_.reset();
}

void Core::end_host(std::uint32_t number, bool has_power) {
  if (number == 0)
    throw std::invalid_argument("weft::sim: the host is the world itself, which cannot end");
  Host& host = state_.host(number);
  if (host.state == HostState::down) return;
  const Shelter shelter(&state_);
  state_.note(number, has_power ? "crashes" : "loses power");
  host.state = HostState::down;
  host.life = state_.new_life();
  host.actors = 0;
  host.computing.clear();
  host.held.clear();
  std::erase_if(ready_, [this](const Candidate& each) { return is_dead(*each.actor); });
  resumable_ = kNone;
  wires_->end_host(number, has_power);
  disks_->end_host(number, has_power);
}

void Core::stop(std::uint32_t number) {
  if (number == 0)
    throw std::invalid_argument("weft::sim: the host is the world itself, which cannot be stopped");
  Host& host = state_.host(number);
  if (host.state != HostState::up) return;
  {
    const Shelter shelter(&state_);
    state_.note(number, "is stopped");
    host.state = HostState::stopped;
    std::erase_if(ready_, [&](const Candidate& each) {
      if (each.actor->host != number) return false;
      host.held.push_back(each.fiber);
      return true;
    });
    resumable_ = kNone;
  }
  if (number == state_.current_host()) this_fiber::yield();
}

void Core::go_on(std::uint32_t number) {
  Host& host = state_.host(number);
  if (host.state != HostState::stopped) return;
  const Shelter shelter(&state_);
  state_.note(number, "goes on");
  host.state = HostState::up;
  for (fibers::Fiber* fiber : std::exchange(host.held, {})) {
    ready_.push_back({fiber, &actors_.at(fiber), false, now_});
  }
}

}  // namespace weft::sim
